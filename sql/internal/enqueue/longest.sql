-- pgcombine_internal.longest(elements) → integer
-- Returns the size of the array's longest element in bytes; null: it has no element.
create or replace function pgcombine_internal.longest(elements anyarray)
returns integer
language sql immutable parallel safe
as $$
    select max(pg_column_size(e)) from unnest(elements) e
$$;
