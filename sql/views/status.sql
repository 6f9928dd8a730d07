-- pgcombine.status: one row a queue, with its pending updates counted exactly.
create or replace view pgcombine.status as
select q.queue, q.buckets, q.paused, pgcombine.backlog(q.queue) as backlog
from pgcombine.queue q;
