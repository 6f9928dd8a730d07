-- pgcombine_internal.handoff_check_address(name, dsn)
-- Raises an error if a connection string holds a secret, or an option outside a fixed list.
-- Other roles can read the addresses. An option could name another host, read the replayer's files, or weaken the
-- replayer's settings for connections, such as TLS. Replayers check the string again before they connect.
-- Errors: PC045 the connection string holds a secret or such an option.
create or replace function pgcombine_internal.handoff_check_address(name text, dsn text)
returns void
language plpgsql immutable
as $$
declare
    _keyword text;
begin
    if pgcombine_internal.holds_secret(dsn) then
        raise exception 'the address of server "%" holds a password', handoff_check_address.name
            using errcode = 'PC045', hint = 'leave it out; libpq finds it in ~/.pgpass (PGPASSFILE) or PGPASSWORD';
    end if;
    select k into _keyword
    from (
        select lower(pgcombine_internal.percent_decoded(split_part(part, '=', 1))) as k
        from regexp_split_to_table(substr(dsn, nullif(strpos(dsn, '?'), 0) + 1), '&') part
        where dsn ~ '^postgres(ql)?://' and part <> ''
        union all
        select m[1] -- these are libpq's white space; \s matches other characters, too
        from regexp_matches(dsn,
            E'([^= \\t\\n\\v\\f\\r]+)[ \\t\\n\\v\\f\\r]*=[ \\t\\n\\v\\f\\r]*(?:''(?:[^''\\\\]|\\\\.)*''|(?:[^ '
            '\\t\\n\\v\\f\\r\\\\]|\\\\.)*)', 'g') m
        where dsn !~ '^postgres(ql)?://'
    ) keywords
    where k <> all (array['host', 'port', 'dbname', 'user', 'application_name', 'connect_timeout', 'keepalives',
        'keepalives_idle',
                          'keepalives_interval', 'keepalives_count', 'tcp_user_timeout', 'target_session_attrs'])
    limit 1;
    if found then
        raise exception 'the address of server "%" sets %', handoff_check_address.name, _keyword
            using errcode = 'PC045',
                hint = 'give host, port, dbname and user only; set the rest in the replayer''s environment '
                '(PGSSLROOTCERT, PGSSLMODE)';
    end if;
end
$$;
