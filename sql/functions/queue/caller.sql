-- pgcombine.caller() → name
-- The role that called a function which runs with its owner's rights: whose privileges count there.
create or replace function pgcombine.caller()
returns name
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(nullif(current_setting('role', true), 'none')::name, session_user)
$$;
