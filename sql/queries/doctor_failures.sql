-- The queues with failing buckets: the number of these buckets, and the error of the one with the most attempts, cut to
-- 1000 characters. The error is null if the role must not see it (see failures).
select distinct on (f.queue) f.queue, count(*) over (partition by f.queue) as buckets, f.attempts, f.sqlstate,
       left(f.error, 1000) as error, f.since
from pgcombine_internal.failures() f
where not f.expires
order by f.queue, f.attempts desc
