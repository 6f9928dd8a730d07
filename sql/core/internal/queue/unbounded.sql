-- pgcombine_internal.unbounded(column) → boolean
-- Returns whether the type of a column allows values of more than 100 kilobytes.
create or replace function pgcombine_internal.unbounded("column" pgcombine.queue_column)
returns boolean
language plpgsql stable
as $$
begin
    return (
        select t.typlen = -1 and (t.typarray <> 0 or t.typcategory = 'A') and b.typname <> 'numeric'
            and ($1).type !~ '\(\d{1,4}\)$'
        from pg_type t join pg_type b on b.oid = pgcombine_internal.base_type(t.oid)
        where t.oid = ($1).type::regtype);
end
$$;
