-- The queues of whose expired keys some weren't removed: in how many buckets, and the last error. Roles without the
-- right to see why passes fail see none.
select distinct on (r.queue) r.queue, count(*) over (partition by r.queue) as buckets, r.sqlstate, r.error,
       -- a worker's word; Python knows no other years
       least(greatest(r.since, '0002-01-01Z'), '9998-01-01Z') as failed_at
from pgcombine_internal.failures() r
join pgcombine.queue q using (queue)
where r.expires and q.expire_when is not null
order by r.queue, r.since desc
