-- Lists holders of old snapshots, and old transactions that have written. An old snapshot keeps combined updates from
-- being truncated. An old snapshot or such a transaction keeps old versions of values from being vacuumed. Passes read
-- past these updates and versions, and get slower.
--   since   when the transaction began or was prepared. For standbys and slots: the time of the transaction id (see
--           time_of); null for an unused slot
--   detail  identifies the holder, and may say how to end it. It leaves out the text of queries, which may hold values:
--           workers log it
-- Only a member of pg_read_all_stats sees sessions of all roles.
-- Parameter, given four times: the minimum age in seconds. Unused replication slots are listed at any age.
select 'session' as holder, a.pid, coalesce(nullif(a.application_name, ''), a.backend_type) as name,
    a.xact_start as since,
    extract(epoch from clock_timestamp() - a.xact_start)::double precision as age_seconds,
    format('%%s, role %%s, its query began at %%s', coalesce(a.state, a.backend_type), coalesce(a.usename, '?'),
           to_char(a.query_start, 'HH24:MI:SS')) as detail
from pg_stat_activity a
where (a.backend_xmin is not null or a.backend_xid is not null)
  and a.pid <> pg_backend_pid()
  and (a.datname = current_database() or a.datname is null) -- null: for example a standby's connection
  and a.backend_type not in ('autovacuum worker', 'parallel worker')
  and a.query !~* '^\s*vacuum\y' -- other vacuums ignore a vacuum's snapshot
  and a.xact_start < clock_timestamp() - make_interval(secs => %s)
union all
select 'standby', s.pid, s.name, s.since, extract(epoch from clock_timestamp() - s.since)::double precision,
    'hot_standby_feedback: end the query on the standby'
from (select a.pid, coalesce(nullif(a.application_name, ''), a.backend_type) as name,
             pgcombine_internal.time_of(txid_snapshot_xmax(txid_current_snapshot()) - age(a.backend_xmin)) as since
      from pg_stat_activity a where a.backend_type = 'walsender' and a.xact_start is null
          and a.backend_xmin is not null) s
where s.since < clock_timestamp() - make_interval(secs => %s)
union all
select 'prepared transaction', null, p.gid, p.prepared, extract(epoch from clock_timestamp() - p.prepared),
    format('role %%s: commit prepared or rollback prepared ends it', p.owner)
from pg_prepared_xacts p
where p.database = current_database() and p.prepared < clock_timestamp() - make_interval(secs => %s)
union all
select 'replication slot', s.active_pid, s.slot_name, case when s.active then s.since end,
    case when s.active then extract(epoch from clock_timestamp() - s.since)::double precision end,
    format('%%s slot, %%s: it keeps the dead rows of %%s transactions', s.slot_type, case when s.active then 'in use'
        else 'not in use' end, age(s.xmin))
from (select l.*, pgcombine_internal.time_of(txid_snapshot_xmax(txid_current_snapshot()) - age(l.xmin)) as since
      from pg_replication_slots l where l.xmin is not null) s
where not s.active or s.since < clock_timestamp() - make_interval(secs => %s)
order by 4 nulls last
