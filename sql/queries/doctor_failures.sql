-- The queues with failing buckets: how many, and the bucket that has failed most often. Roles without the right to see
-- why passes fail see none. A long error is cut.
select distinct on (f.queue) f.queue, count(*) over (partition by f.queue) as buckets, f.attempts, f.sqlstate,
       left(f.error, 1000) as error, f.since
from pgcombine_internal.failures() f
where not f.expires
order by f.queue, f.attempts desc
