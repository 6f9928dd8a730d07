-- Stores a queue's topology (handoff_queue) if the server has none yet.
update pgcombine.handoff_queue set (servers, replicas, placed, former) = (%s, %s, %s, %s)
where queue = %s and servers is null
