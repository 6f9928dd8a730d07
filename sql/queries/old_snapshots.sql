-- Lists holders of old snapshots, and old transactions that have written. An old snapshot keeps combined updates from
-- being truncated. An old snapshot or such a transaction keeps old versions of values from being vacuumed. Passes read
-- past these updates and versions, and get slower.
--   since   when the transaction began or was prepared. For standbys, slots, and sessions that the reader can't see:
--           the time of the transaction id (see time_of); null for an unused slot
--   detail  identifies the holder, and may say how to end it. It leaves out the text of queries, which may hold values:
--           workers log it. Of VACUUM FULL, CLUSTER and REPACK, also CONCURRENTLY, it names the table
-- Parameter, given four times: the minimum age in seconds. Unused replication slots are listed at any age.
select 'session' as holder, a.pid, a.name, a.since,
    extract(epoch from clock_timestamp() - a.since)::double precision as age_seconds,
    concat_ws(', ', a.state, 'role ' || coalesce(a.usename, '?'),
        'its query began at ' || to_char(a.query_start, 'HH24:MI:SS'),
        'it rewrites ' || a.rewritten::regclass || ' (' || a.command || ')') as detail
from (
    select s.pid, s.usename, s.query_start, coalesce(nullif(s.application_name, ''), s.backend_type) as name,
           coalesce(s.state, s.backend_type) as state, coalesce(s.xact_start, pgcombine_internal.time_of(
               txid_snapshot_xmax(txid_current_snapshot()) - greatest(age(s.backend_xmin), age(s.backend_xid)))
           ) as since, c.relid as rewritten,
           -- in this view REPACK has the names of the older commands
           case when s.query ~* '^\s*repack\y' then 'REPACK' else c.command end as command
    from pg_stat_activity s
    left join pg_stat_progress_cluster c on c.pid = s.pid and c.relid is not null
    where (s.backend_xmin is not null or s.backend_xid is not null)
      and s.pid <> pg_backend_pid()
      and (s.datname = current_database() or s.datname is null and s.xact_start is not null) -- null: a base backup
      and coalesce(s.backend_type, '') not in ('autovacuum worker', 'parallel worker', 'REPACK decoding worker')
      and not exists (select from pg_stat_progress_vacuum v where v.pid = s.pid) -- its snapshot keeps no rows
) a
where a.since < clock_timestamp() - make_interval(secs => %s)
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
    case when s.plugin = 'pgrepack' then 'repack (concurrently) in the database ' || s.database
        else format('%%s slot, %%s: it keeps the dead rows of %%s transactions', s.slot_type,
            case when s.active then 'in use' else 'not in use' end, age(s.xmin)) end
from (select l.*, pgcombine_internal.time_of(
          txid_snapshot_xmax(txid_current_snapshot()) - age(coalesce(l.xmin, l.catalog_xmin))) as since
      from pg_replication_slots l
      -- the snapshot of REPACK keeps the dead rows of all databases
      where l.xmin is not null or l.plugin = 'pgrepack' and l.database <> current_database()) s
where not s.active or s.since < clock_timestamp() - make_interval(secs => %s)
order by 4 nulls last
