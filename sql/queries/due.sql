-- The buckets that a worker should pass over now, and whether their queues have observers. Parameter: the queue; null:
-- all.
select d.queue, d.bucket, exists (select from pgcombine.observer o where o.queue = d.queue)
from pgcombine_internal.due(%s) d
