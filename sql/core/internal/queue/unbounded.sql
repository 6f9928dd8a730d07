-- pgcombine_internal.unbounded(column) → boolean
-- Returns false if the type of a column bounds its values to 100 kilobytes: a type of fixed length, numeric, or one
-- with a length of at most four digits. True: its values may be larger.
create or replace function pgcombine_internal.unbounded("column" pgcombine.queue_column)
returns boolean
language plpgsql stable
as $$
begin
    return (
        select t.typlen = -1 and (t.typarray <> 0 or t.typcategory = 'A') and b.typname <> 'numeric'
            and ($1).type !~ E'\\(\\d{1,4}\\)$'
        from pg_type t join pg_type b on b.oid = pgcombine_internal.base_type(t.oid)
        where t.oid = ($1).type::regtype);
end
$$;
