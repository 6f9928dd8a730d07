-- pgcombine.status: one row a queue, with its pending updates counted exactly, and the age of the oldest in seconds, to
-- about a second (see bucket_status).
create or replace view pgcombine.status as
select q.queue, q.buckets, q.paused, s.backlog, s.lag_seconds
from pgcombine.queue q
cross join lateral (
    select sum(s.backlog)::bigint as backlog, max(s.lag_seconds) as lag_seconds
    from pgcombine.bucket b cross join lateral pgcombine.bucket_status(b.queue, b.bucket) s
    where b.queue = q.queue
) s;
