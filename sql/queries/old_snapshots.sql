-- Who keeps combined updates from being truncated, and former versions of values from being vacuumed away: each pass has to
-- walk over both, so that an old snapshot anywhere in the database slows all passes down, the longer it is held.
-- The parameter, twice, in seconds: transactions that began longer ago. Replication slots that nobody reads: any time.
-- since is null for a slot; detail says how it can be told apart, and ended. The text of its query isn't in it: workers log
-- this, and a query may hold what isn't for the log's readers.
-- To who isn't a member of pg_read_all_stats the sessions of other roles show nothing of the kind.
select 'session' as holder, a.pid, coalesce(nullif(a.application_name, ''), a.backend_type) as name, a.xact_start as since,
    extract(epoch from clock_timestamp() - a.xact_start)::double precision as age_seconds,
    format('%%s of %%s, query since %%s', coalesce(a.state, a.backend_type), coalesce(a.usename, '?'),
           to_char(a.query_start, 'HH24:MI:SS')) as detail
from pg_stat_activity a
where (a.backend_xmin is not null or a.backend_xid is not null)
  and a.pid <> pg_backend_pid()
  and (a.datname = current_database() or a.datname is null) -- null: of a standby
  and a.backend_type not in ('autovacuum worker', 'parallel worker')
  and a.query !~* '^\s*vacuum\y' -- holds up nobody
  and a.xact_start < clock_timestamp() - make_interval(secs => %s)
union all
select 'prepared transaction', null, p.gid, p.prepared, extract(epoch from clock_timestamp() - p.prepared),
    format('of %%s: commit prepared or rollback prepared ends it', p.owner)
from pg_prepared_xacts p
where p.database = current_database() and p.prepared < clock_timestamp() - make_interval(secs => %s)
union all
select 'replication slot', null, s.slot_name, null, null,
    format('%%s, read by nobody, holds up %%s transactions', s.slot_type, age(s.xmin))
from pg_replication_slots s
where s.xmin is not null and not s.active
order by 4 nulls last
