-- The queues of whose expired keys some weren't removed: in how many buckets, and the last error. Roles without the right
-- to see why passes fail see none.
select distinct on (r.queue) r.queue, count(*) over (partition by r.queue) as buckets, r.sqlstate, r.error, r.failed_at
from pgcombine.retention r
join pgcombine.queue q using (queue)
where r.error is not null and q.retain is not null
order by r.queue, r.failed_at desc
