-- The queues that are here and have servers, with how many of them hold a key.
select h.queue, h.servers, h.replicas
from pgcombine.handoff_queue h join pgcombine.queue q using (queue)
order by h.queue
