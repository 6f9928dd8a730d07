-- The queues whose passes took most of the time of all their buckets in the last four minutes: their number of buckets,
-- and the share of the time. The last minute may not be summed up yet.
select q.queue, q.buckets, least(1, sum(m.seconds) / 240 / q.buckets) as share
from pgcombine.queue q join pgcombine.minute_stat m using (queue)
where m.minute >= date_trunc('minute', now()) - interval '4 min' and q.buckets < 1024
group by q.queue, q.buckets
having sum(m.seconds) / 240 / q.buckets > 0.7
