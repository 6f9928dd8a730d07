-- Stores a queue's topology (its servers and replicas in handoff_queue) if this server has none yet. Parameters: the
-- columns servers, replicas, placed and former; the queue.
update pgcombine.handoff_queue set (servers, replicas, placed, former) = (%s, %s, %s, %s)
where queue = %s and servers is null
