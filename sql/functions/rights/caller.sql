-- pgcombine.caller() → name
-- The role that called a function which runs with its owner's rights: whose privileges count there.
-- It is the session's role. PostgreSQL doesn't tell for whom other code of the session runs: where a superuser analyzes
-- a table, functions in the table's indexes run as its owner, and this says the superuser. So what changes or tells
-- anything must not hang on this alone: loads and runs belong to roles by row level security (grants.sql).
create or replace function pgcombine.caller()
returns name
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(nullif(current_setting('role', true), 'none')::name, session_user)
$$;
