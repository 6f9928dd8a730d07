-- pgcombine_internal.aim_shard(queue, shard, node)
-- Records the node to which a shard is being moved. Null: the move has ended, or was cancelled.
-- Tables written: pgcombine.front_shard.
create or replace function pgcombine_internal.aim_shard(queue text, shard integer, node text)
returns void
language sql
as $$
    update pgcombine.front_shard s set target = aim_shard.node, former = null
    where (s.queue, s.shard) = (aim_shard.queue, aim_shard.shard)
$$;
