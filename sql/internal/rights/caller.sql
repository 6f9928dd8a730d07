-- pgcombine_internal.caller() → name
-- Returns the role that called a function which runs with its owner's rights, so that the function can check that
-- role's privileges.
-- It is the session's role, which may not be the role that code runs for. If a superuser analyzes a table, functions in
-- the table's indexes run as the table's owner, but caller() returns the superuser. So no function that changes or
-- returns data may rely on caller() alone: row level security gives loads and runs to roles (grants.sql).
create or replace function pgcombine_internal.caller()
returns name
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(nullif(current_setting('role', true), 'none')::name, session_user)
$$;
