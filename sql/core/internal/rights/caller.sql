-- pgcombine_internal.caller() → name
-- Returns the role that called a function which runs with its owner's rights: the role that the session has set, or
-- else the session's user.
-- PostgreSQL also runs another role's code in a session: functions in the indexes of a table that a superuser or
-- autovacuum analyzes run as the table's owner. PostgreSQL calls this a security-restricted operation; REINDEX,
-- CLUSTER, VACUUM FULL and REFRESH MATERIALIZED VIEW are others. caller() raises an error in them. So functions that
-- run with their owner's rights call it even if they need no name.
-- Errors: 42501 a security-restricted operation.
create or replace function pgcombine_internal.caller()
returns name
language plpgsql
as $$
begin
    unlisten pgcombine_guard; -- has no effect, but PostgreSQL refuses it in a security-restricted operation
    return coalesce(nullif(current_setting('role', true), 'none')::name, session_user);
end
$$;
