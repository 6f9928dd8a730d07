-- pgcombine_internal.oldest_snapshot() → bigint
-- Returns a transaction id. Every snapshot that counts sees each transaction with a lower id that committed before this
-- call.
-- The snapshots of the database's other sessions count, and those of standbys, which they hold through connections and
-- replication slots. Those of vacuums and of server processes without a role, such as autovacuum, don't count.
-- The result is the greatest bigint if no snapshot is held. It is null if there are sessions of other roles whose
-- snapshots the caller can't see; members of pg_read_all_stats see all.
create or replace function pgcombine_internal.oldest_snapshot()
returns bigint
language sql volatile
as $$
    select pg_stat_clear_snapshot(); -- a transaction sees the same statistics again unless they are cleared
    select case when not coalesce(bool_or(held.hidden), false) then
               -- held.id has only 32 bits; the full id is at most 2 ^ 31 away from the newest one
               coalesce(min(now.id + ((held.id - now.id + 2147483648) & 4294967295) - 2147483648),
                   9223372036854775807) end
    from (select txid_snapshot_xmax(txid_current_snapshot())) now (id)
    left join (
        select a.backend_xmin::text::bigint as id,
               not (pg_has_role('pg_read_all_stats', 'usage') or pg_has_role(a.usesysid, 'usage')) as hidden
        from pg_stat_activity a
        where a.pid <> pg_backend_pid()
          and (a.datname = current_database() or a.pid in (select w.pid from pg_stat_get_wal_senders() w))
          and a.usesysid is not null
          and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
        union all
        select s.xmin::text::bigint, false from pg_replication_slots s
    ) held on held.id is not null or held.hidden
$$;
