-- The figures of the queues, with the limit of each one's backlog.
select s.queue, s.buckets, s.paused, s.pending, s.lag_seconds, s.updates_per_second_1m, s.last_pass_at, s.failing_buckets,
       s.quarantined_keys, s.held_updates, s.pending_at, q.max_backlog,
       extract(epoch from clock_timestamp() - s.last_pass_at)::double precision as last_pass_seconds
from pgcombine.queue_stat s
join pgcombine.queue q using (queue)
order by s.queue
