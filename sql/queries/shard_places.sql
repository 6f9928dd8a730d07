-- The shards of a front in order, for programs that write straight to the nodes: the name of the shard's queue, its
-- node, and the node's connection parameters (node_address). Raises an error if there is no such front.
-- Parameter: the front.
select pgcombine_internal.shard_name(s.queue, s.shard), s.node, pgcombine_internal.node_address(s.node)
from pgcombine_internal.require_front(%s) f
join pgcombine.front_shard s on s.queue = f.queue
order by s.shard
