-- Figures of queue_stat, max_backlog, and these:
--   pending_seconds    seconds since pending_at
--   last_pass_seconds  seconds since last_pass_at
--   pass_seconds       age of the oldest transaction that is probably a pass over the queue: it has locks on a
--                      partition of <queue>_values and on pgcombine.bucket, and doesn't wait for a lock. Null if this
--                      role sees none
select s.queue, s.buckets, s.paused, s.pending, s.lag_seconds, s.updates_per_second_1m, s.last_pass_at,
    s.failing_buckets,
       s.quarantined_keys, s.quarantined_updates, q.max_backlog,
       extract(epoch from clock_timestamp() - s.pending_at)::double precision as pending_seconds,
       extract(epoch from clock_timestamp() - s.last_pass_at)::double precision as last_pass_seconds,
       (select extract(epoch from clock_timestamp() - min(a.xact_start))::double precision
        from pg_inherits i
        join pg_locks l on l.relation = i.inhrelid and l.mode = 'RowExclusiveLock' and l.granted
        join pg_stat_activity a on a.pid = l.pid and a.datname = current_database()
        where i.inhparent = to_regclass(format('pgcombine.%I', s.queue || '_values'))
          and exists (select from pg_locks c where c.pid = l.pid and c.relation = 'pgcombine.bucket'::regclass
              and c.mode = 'RowShareLock')
          and a.state in ('active', 'idle in transaction')
              and a.wait_event_type is distinct from 'Lock') as pass_seconds
from pgcombine.queue_stat s
join pgcombine.queue q using (queue)
order by s.queue
