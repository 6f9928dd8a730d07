-- pgcombine_internal.lock_capacity() → bigint
-- Returns the number of objects that all sessions together can lock, by the server's configuration.
-- There is some spare memory beyond that, but a session that uses it leaves none to the others. Each possible process
-- or prepared transaction (MaxBackends in PostgreSQL's sources) adds room for max_locks_per_transaction locks.
create or replace function pgcombine_internal.lock_capacity()
returns bigint
language sql stable
as $$
    select (sum(s.setting::bigint) + 1) * current_setting('max_locks_per_transaction')::bigint
    from pg_settings s
    where s.name in ('max_connections', 'max_prepared_transactions', 'max_worker_processes', 'max_wal_senders')
       or s.name = case when current_setting('server_version_num')::integer >= 180000
                        then 'autovacuum_worker_slots' else 'autovacuum_max_workers' end
$$;
