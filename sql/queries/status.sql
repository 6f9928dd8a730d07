select q.queue, q.paused, b.bucket, s.backlog, s.lag_seconds
from pgcombine.queue q
join pgcombine.bucket b using (queue)
cross join lateral pgcombine_internal.bucket_status(q.queue, b.bucket) s
where pgcombine_internal.has_right(q.queue, 'use')
order by q.queue, b.bucket
