-- pgcombine_internal.printed_view(view) → text
-- Returns the query of a view as PostgreSQL prints it. The text doesn't depend on the session's search_path, datestyle
-- or intervalstyle.
create or replace function pgcombine_internal.printed_view(view regclass)
returns text
language sql stable
set search_path = pg_catalog
set datestyle = 'ISO'
set intervalstyle = 'postgres'
as $$
    select pg_get_viewdef(view)
$$;
