-- Stores a queue's topology in the queue's row of handoff_queue, if the row has none. Parameters: the columns servers,
-- replicas, placed and former; the queue.
update pgcombine.handoff_queue set (servers, replicas, placed, former) = (%s, %s, %s, %s)
where queue = %s and servers is null
