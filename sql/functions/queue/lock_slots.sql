-- pgcombine.lock_slots() → bigint
-- How often the server makes room for max_locks_per_transaction locks: once for each process or prepared
-- transaction that there can be (MaxBackends in PostgreSQL's sources).
create or replace function pgcombine.lock_slots()
returns bigint
language sql stable
as $$
    select sum(s.setting::bigint) + 1
    from pg_settings s
    where s.name in ('max_connections', 'max_prepared_transactions', 'max_worker_processes', 'max_wal_senders')
       or s.name = case when current_setting('server_version_num')::integer >= 180000
                        then 'autovacuum_worker_slots' else 'autovacuum_max_workers' end
$$;
