-- pgcombine.lock_capacity() → bigint
-- How many objects the server is configured to lock at the same time, all sessions together. There is some memory
-- beyond that; who takes it leaves the others without locks. Each process or prepared transaction that there can be makes
-- room for max_locks_per_transaction of them (MaxBackends in PostgreSQL's sources).
create or replace function pgcombine.lock_capacity()
returns bigint
language sql stable
as $$
    select (sum(s.setting::bigint) + 1) * current_setting('max_locks_per_transaction')::bigint
    from pg_settings s
    where s.name in ('max_connections', 'max_prepared_transactions', 'max_worker_processes', 'max_wal_senders')
       or s.name = case when current_setting('server_version_num')::integer >= 180000
                        then 'autovacuum_worker_slots' else 'autovacuum_max_workers' end
$$;
