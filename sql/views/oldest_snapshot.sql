-- pgcombine.oldest_snapshot
-- The holder of the oldest snapshot in the database, if any: it keeps combined updates from being truncated, and old
-- versions of values from being vacuumed. It doesn't show the query. The columns are in pgcombine/docs/monitoring.md.
-- A reader that isn't a member of pg_read_all_stats sees snapshots of its own role's sessions only.
create or replace view pgcombine.oldest_snapshot as
select h.holder, h.pid, h.name, h.role, h.state, h.since, extract(epoch from clock_timestamp() - h.since)::double precision as age_seconds, h.transactions
from (
    select 'session' as holder, a.pid, coalesce(nullif(a.application_name, ''), a.backend_type) as name, a.usename::text as role, a.state,
           a.xact_start as since, age(a.backend_xmin) as transactions
    from pg_stat_activity a
    where a.backend_xmin is not null and a.pid <> pg_backend_pid()
      and (a.datname = current_database() or a.datname is null) -- null: a standby's
      and a.usesysid is not null
      and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid) -- a vacuum's snapshot keeps no rows
    union all
    select 'replication slot', s.active_pid, s.slot_name::text, null, null, null, age(s.xmin)
    from pg_replication_slots s where s.xmin is not null
) h
order by h.transactions desc, h.since
limit 1;
