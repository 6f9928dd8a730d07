-- pgcombine_internal.refresh_types(queue) → boolean
-- Updates the stored type names of a queue's columns, and returns whether a type was renamed.
-- Tables written: pgcombine.queue_column.
create or replace function pgcombine_internal.refresh_types(queue text)
returns boolean
language plpgsql
as $$
begin
    update pgcombine.queue_column c set type = pgcombine_internal.type_name(a.atttypid, a.atttypmod)
    from pg_attribute a
    where c.queue = refresh_types.queue and a.attname = c.name
      and a.attrelid = to_regclass(format('pgcombine.%I', refresh_types.queue || '_values'))
      and c.type <> pgcombine_internal.type_name(a.atttypid, a.atttypmod);
    return found;
end
$$;
