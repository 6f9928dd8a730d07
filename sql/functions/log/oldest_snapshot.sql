-- pgcombine.oldest_snapshot() → bigint
-- What has committed under a lower id before this call is seen by every snapshot that is held in the database: by other
-- sessions, and by standbys through their connections and replication slots. Of prepared transactions none is held.
-- The caller's own session doesn't count, nor do vacuums, which read no updates.
-- Null: the caller can't see what other roles' sessions hold. It takes membership in pg_read_all_stats.
create or replace function pgcombine.oldest_snapshot()
returns bigint
language sql volatile
as $$
    select pg_stat_clear_snapshot(); -- of this moment, whatever the transaction has looked at before
    select case when not coalesce(bool_or(held.hidden), false) then
               -- 32 bits of the id, which is at most 2 ^ 31 away from the newest
               coalesce(min(now.id + ((held.id - now.id + 2147483648) & 4294967295) - 2147483648), 9223372036854775807) end
    from (select txid_snapshot_xmax(txid_current_snapshot())) now (id)
    left join (
        select a.backend_xmin::text::bigint as id, 
               not (pg_has_role('pg_read_all_stats', 'usage') or pg_has_role(a.usesysid, 'usage')) as hidden
        from pg_stat_activity a
        where a.pid <> pg_backend_pid()
          and (a.datname = current_database() or a.datname is null) -- null: a walsender, or a process of the server
          and a.usesysid is not null
          and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
        union all
        select s.xmin::text::bigint, false from pg_replication_slots s
    ) held on held.id is not null or held.hidden
$$;
