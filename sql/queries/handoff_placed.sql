-- The replicated queues on this server, with their topology (handoff_queue).
select h.queue, h.servers, h.replicas, h.placed, h.former
from pgcombine.handoff_queue h join pgcombine.queue q using (queue)
order by h.queue
