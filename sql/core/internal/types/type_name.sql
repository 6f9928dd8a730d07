-- pgcombine_internal.type_name(type, modifier) → text
-- Returns a type as DDL takes it, qualified unless it is PostgreSQL's own.
create or replace function pgcombine_internal.type_name(type oid, modifier integer)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select format_type(type, modifier)
$$;
