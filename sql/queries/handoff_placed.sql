-- The queues on this server that have a topology, with the number of servers that hold a key.
select h.queue, h.servers, h.replicas
from pgcombine.handoff_queue h join pgcombine.queue q using (queue)
order by h.queue
