-- The queues with failing buckets: how many, and the bucket that has failed most often. Roles without the right to see
-- why passes fail see none.
select distinct on (f.queue) f.queue, count(*) over (partition by f.queue) as buckets, f.attempts, f.sqlstate, f.error, f.since
from pgcombine.failure f
order by f.queue, f.attempts desc
