-- pgcombine_internal.handoff_check_address(name, dsn)
-- Raises an error if a connection string holds a secret, or an option outside a fixed list.
-- Other roles can read the addresses. An option could name another host, read the replayer's files, or weaken the
-- replayer's settings for connections, such as TLS. Replayers check the string again before they connect.
-- Errors: PC045 the connection string holds a secret or such an option.
create or replace function pgcombine_internal.handoff_check_address(name text, dsn text)
returns void
language plpgsql
as $$
declare
    _keyword text;
begin
    perform pgcombine_internal.require(not pgcombine_internal.holds_secret(dsn), 'PC045',
        format('the address of server "%s" holds a password', name),
        'leave it out; libpq finds it in ~/.pgpass (PGPASSFILE) or PGPASSWORD');
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
    perform pgcombine_internal.require(not found, 'PC045',
        format('the address of server "%s" sets %s', name, _keyword),
        'give host, port, dbname and user only; set the rest in the replayer''s environment (PGSSLROOTCERT, '
        'PGSSLMODE)');
end
$$;
