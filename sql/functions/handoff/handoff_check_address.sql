-- pgcombine.handoff_check_address(name, dsn)
-- That a connection string says where a server is, and nothing else: no secret, since the catalog is readable by
-- others; nothing that leads elsewhere than its host says (hostaddr, a service), reads the replayer's files, or
-- weakens what a replayer demands of the connection. Replayers check again what they are about to open.
-- Errors: PC045 it isn't so.
create or replace function pgcombine.handoff_check_address(name text, dsn text)
returns void
language plpgsql immutable
as $$
declare
    _keyword text;
begin
    if pgcombine.holds_secret(dsn) then
        raise exception 'the address of server "%" holds a password', handoff_check_address.name
            using errcode = 'PC045', hint = 'leave it out; libpq finds it in ~/.pgpass (PGPASSFILE) or PGPASSWORD';
    end if;
    select k into _keyword
    from (
        select lower(pgcombine.percent_decoded(split_part(part, '=', 1))) as k
        from regexp_split_to_table(substr(dsn, nullif(strpos(dsn, '?'), 0) + 1), '&') part
        where dsn ~ '^postgres(ql)?://' and part <> ''
        union all
        select m[1] -- white space as libpq knows it
        from regexp_matches(dsn, E'([^= \\t\\n\\v\\f\\r]+)[ \\t\\n\\v\\f\\r]*=[ \\t\\n\\v\\f\\r]*(?:''(?:[^''\\\\]|\\\\.)*''|(?:[^ \\t\\n\\v\\f\\r\\\\]|\\\\.)*)', 'g') m
        where dsn !~ '^postgres(ql)?://'
    ) keywords
    where k <> all (array['host', 'port', 'dbname', 'user', 'application_name', 'connect_timeout', 'keepalives', 'keepalives_idle',
                          'keepalives_interval', 'keepalives_count', 'tcp_user_timeout', 'target_session_attrs'])
    limit 1;
    if found then
        raise exception 'the address of server "%" sets %', handoff_check_address.name, _keyword
            using errcode = 'PC045', hint = 'host, port, dbname and user say where it is; give the rest to the replayer, in its environment (PGSSLROOTCERT, PGSSLMODE)';
    end if;
end
$$;
