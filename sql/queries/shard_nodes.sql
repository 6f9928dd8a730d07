-- The nodes of all fronts of this database, with their connection parameters (node_address). A node from which or to
-- which a shard is being moved is one of them.
select n.node, pgcombine_internal.node_address(n.node)
from (select unnest(array[s.node, s.target, s.former])::text from pgcombine.front_shard s) n (node)
where n.node is not null
group by n.node
order by n.node
