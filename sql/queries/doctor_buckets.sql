-- The queues whose passes took most of the time of all their buckets in the last two minutes: their number of buckets,
-- and the share of the time.
select q.queue, q.buckets, p.share
from pgcombine.queue q
cross join lateral (
    select sum(date_part('epoch', p.ended - greatest(p.began, now() - interval '2 min'))) / 120 / q.buckets as share
    from pgcombine.pass p where p.queue = q.queue and p.ended > now() - interval '2 min') p
where p.share > 0.75 and q.buckets < 1024
