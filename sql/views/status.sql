-- pgcombine.status: one row a queue, with its pending updates counted exactly, and the age of the oldest in seconds, to
-- about a second (see bucket_status).
create or replace view pgcombine.status as
select q.queue, q.buckets, q.paused, pgcombine.backlog(q.queue) as backlog,
       (select max(s.lag_seconds)
        from pgcombine.bucket b cross join lateral pgcombine.bucket_status(b.queue, b.bucket) s
        where b.queue = q.queue) as lag_seconds
from pgcombine.queue q;
