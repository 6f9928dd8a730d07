-- pgcombine_internal.caller() → name
-- Returns the role that called a function which runs with its owner's rights: the role that the session has set, or
-- else the session's user.
-- PostgreSQL also runs another role's code in a session: functions in the indexes of a table that a superuser or
-- autovacuum analyzes run as the table's owner. PostgreSQL calls this a security-restricted operation; REINDEX,
-- CLUSTER, VACUUM FULL and REFRESH MATERIALIZED VIEW are others. Components run another role's code in functions that
-- belong to that role, pgcombine_internal.<name>_owned(text). caller() raises an error in all of these. So functions
-- that run with their owner's rights call it even if they need no name.
-- Errors: 42501 a security-restricted operation, or code that such a function of a component runs.
create or replace function pgcombine_internal.caller()
returns name
language plpgsql
as $$
declare
    _calls text;
begin
    unlisten pgcombine_guard; -- has no effect, but PostgreSQL refuses it in a security-restricted operation
    get diagnostics _calls = pg_context;
    if _calls ~ 'pgcombine_internal[.][a-z0-9_]+_owned[(]text[)]' then
        raise exception 'permission denied: the code of another role, which runs in this session, can''t call it'
            using errcode = '42501', hint = 'let no index, policy or type of a table call functions of pgcombine';
    end if;
    return coalesce(nullif(current_setting('role', true), 'none')::name, session_user);
end
$$;
