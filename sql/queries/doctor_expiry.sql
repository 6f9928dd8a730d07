-- The queues with expire_when in which the removal of expired keys has failed: the number of buckets where it failed,
-- and the latest error. The error is null if the role must not see it (see failures).
select distinct on (r.queue) r.queue, count(*) over (partition by r.queue) as buckets, r.sqlstate, r.error,
       -- psycopg can't read times before the year 1 or after the year 9999
       least(greatest(r.since, '0002-01-01Z'), '9998-01-01Z') as failed_at
from pgcombine_internal.failures() r
join pgcombine.queue q using (queue)
where r.expires and q.expire_when is not null
order by r.queue, r.since desc
