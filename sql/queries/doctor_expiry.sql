-- The queues from which some expired keys couldn't be removed: the number of buckets with such keys, and the last
-- error. The error is null for roles without the right to see why passes fail.
select distinct on (r.queue) r.queue, count(*) over (partition by r.queue) as buckets, r.sqlstate, r.error,
       -- Python can't read times before year 1 or after year 9999
       least(greatest(r.since, '0002-01-01Z'), '9998-01-01Z') as failed_at
from pgcombine_internal.failures() r
join pgcombine.queue q using (queue)
where r.expires and q.expire_when is not null
order by r.queue, r.since desc
