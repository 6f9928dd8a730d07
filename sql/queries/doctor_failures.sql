-- The queues with failing buckets: the number of these buckets, and the error of the bucket that has failed most often,
-- cut to 1000 characters. The error is null for roles without the right to see why passes fail.
select distinct on (f.queue) f.queue, count(*) over (partition by f.queue) as buckets, f.attempts, f.sqlstate,
       left(f.error, 1000) as error, f.since
from pgcombine_internal.failures() f
where not f.expires
order by f.queue, f.attempts desc
