-- pgcombine_internal.caller() → name
-- Returns the role that called a function which runs with its owner's rights. Every such function calls it first, even
-- if it needs no name. It is the session's role. But functions in the indexes of a table that a superuser or autovacuum
-- analyzes run as the table's owner in the session of another, which PostgreSQL calls a security-restricted operation
-- (as it does REINDEX, CLUSTER, VACUUM FULL and REFRESH MATERIALIZED VIEW). caller() raises there.
-- Errors: 42501 a security-restricted operation.
create or replace function pgcombine_internal.caller()
returns name
language plpgsql
as $$
begin
    unlisten pgcombine_guard; -- nobody listens: PostgreSQL refuses the statement in a security-restricted operation
    return coalesce(nullif(current_setting('role', true), 'none')::name, session_user);
end
$$;
