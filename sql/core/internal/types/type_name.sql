-- pgcombine_internal.type_name(type, modifier) → text
-- Returns a type as DDL accepts it, qualified unless it is one of PostgreSQL's own types. The text doesn't depend on
-- the session's settings.
create or replace function pgcombine_internal.type_name(type oid, modifier integer)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
set quote_all_identifiers = off
as $$
    select format_type(type, modifier)
$$;
