-- pgcombine_internal.lock_capacity([version]) → bigint
-- Returns the number of objects that all sessions together can lock: max_locks_per_transaction for each possible
-- process or prepared transaction. PostgreSQL up to version 18 has room for more than that. According to its release
-- notes, PostgreSQL 19 needs twice the setting for the same room, so there the result is half as large.
--   version  a number like server_version_num, for tests
create or replace function pgcombine_internal.lock_capacity(
    version integer default current_setting('server_version_num')::integer)
returns bigint
language sql stable
as $$
    select (sum(s.setting::bigint) + 1) * current_setting('max_locks_per_transaction')::bigint / case
        when lock_capacity.version >= 190000 then 2 else 1 end
    from pg_settings s
    where s.name in ('max_connections', 'max_prepared_transactions', 'max_worker_processes', 'max_wal_senders')
       or s.name = case when lock_capacity.version >= 180000 then 'autovacuum_worker_slots'
           else 'autovacuum_max_workers' end
$$;
