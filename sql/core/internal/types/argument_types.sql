-- pgcombine_internal.argument_types(procedure) → text
-- Returns the types of a function's arguments, qualified unless they are PostgreSQL's own.
create or replace function pgcombine_internal.argument_types(procedure oid)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select oidvectortypes(p.proargtypes) from pg_proc p where p.oid = $1
$$;
