-- Stores a queue's topology in handoff_queue, if this server has none for the queue. Parameters: the columns servers,
-- replicas, placed and former; the queue.
update pgcombine.handoff_queue set (servers, replicas, placed, former) = (%s, %s, %s, %s)
where queue = %s and servers is null
