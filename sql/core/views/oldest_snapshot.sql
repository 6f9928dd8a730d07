-- pgcombine.oldest_snapshot
-- The holder of the oldest snapshot in the database, or of the oldest transaction that has written; no row if there is
-- none. The reader's own session and vacuums don't count.
-- A snapshot keeps updates that were combined after it from being truncated. Snapshots and transactions that have
-- written keep old versions of values from being vacuumed.
-- A standby with hot_standby_feedback holds a snapshot, usually a young one. Neither a standby nor a slot says
-- since when it holds its snapshot, so the view dates the transaction id (see time_of).
-- Of the sessions, a reader that isn't a member of pg_read_all_stats sees only those of its own roles. The view doesn't
-- show the text of queries.
--   holder        session, prepared transaction, standby or replication slot
--   pid           process of the session or the standby's connection, or the one that reads the slot; null if there is
--                 none
--   name          application_name (if it is empty, the kind of process), or the name of the transaction or slot
--   role          role of the session or of the standby's connection, or owner of the prepared transaction
--   state         state of the session or of the standby's connection, such as active or idle in transaction
--   since         when the session's transaction began, or when it was prepared; for a standby or a slot an estimate
--   age_seconds   seconds since that time
--   transactions  age of the snapshot or of the transaction, as a number of transaction ids
create or replace view pgcombine.oldest_snapshot as
select d.holder, d.pid, d.name, d.role, d.state, d.since,
    extract(epoch from clock_timestamp() - d.since)::double precision as age_seconds, d.transactions
from (
    select h.holder, h.pid, h.name, h.role, h.state,
           coalesce(h.since, pgcombine_internal.time_of(coalesce(txid_current_if_assigned(),
               txid_snapshot_xmax(txid_current_snapshot())) - h.transactions)) as since,
           h.transactions
    from (
        select case when a.datname is null then 'standby' else 'session' end as holder, a.pid,
            coalesce(nullif(a.application_name, ''), a.backend_type) as name,
               a.usename::text as role, a.state, a.xact_start as since,
               greatest(age(a.backend_xmin), age(a.backend_xid)) as transactions
        from pg_stat_activity a
        where (a.backend_xmin is not null or a.backend_xid is not null) and a.pid <> pg_backend_pid()
          and (a.datname = current_database() or a.datname is null) -- null: a standby's connection
          and a.usesysid is not null
          -- a vacuum's snapshot keeps no rows
          and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
        union all
        select 'prepared transaction', null, p.gid, p.owner::text, null, p.prepared, age(p.transaction)
        from pg_prepared_xacts p where p.database = current_database()
        union all
        select 'replication slot', s.active_pid, s.slot_name::text, null, null, null, age(s.xmin)
        from pg_replication_slots s where s.xmin is not null
    ) h
    order by h.transactions desc, h.since -- of a session and a standby of the same age, the session comes first
    limit 1
) d;
