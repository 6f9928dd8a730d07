-- pgcombine.status: one row a queue that the reader may use in any way, with its pending updates counted exactly, and the age of the oldest in seconds, to
-- about a second (see bucket_status). Updates of quarantined keys are held: they aren't pending, and neither
-- <queue>_values nor <queue>_current has them. A failing bucket is tried again and again (see fail_pass).
-- A security barrier: no function of the reader's sees a row that the reader may not see.
create or replace view pgcombine.status with (security_barrier) as
select q.queue, q.buckets, q.paused, s.backlog, s.lag_seconds, h.quarantined_keys, h.held_updates, h.failing_buckets
from pgcombine.queue q
cross join lateral (
    select sum(s.backlog)::bigint as backlog, max(s.lag_seconds) as lag_seconds
    from pgcombine.bucket b cross join lateral pgcombine.bucket_status(b.queue, b.bucket) s
    where b.queue = q.queue
) s
cross join lateral pgcombine.quarantine_status(q.queue) h
where pgcombine.has_right(q.queue, 'use');
