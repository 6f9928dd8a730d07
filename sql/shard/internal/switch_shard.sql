-- pgcombine_internal.switch_shard(queue, shard)
-- Makes the node to which a shard is being moved the shard's node, and moves the shard's foreign tables there.
-- Tables written: pgcombine.front_shard.
create or replace function pgcombine_internal.switch_shard(queue text, shard integer)
returns void
language plpgsql
as $$
begin
    update pgcombine.front_shard s set node = s.target, former = s.node, target = null
    where (s.queue, s.shard) = (switch_shard.queue, switch_shard.shard);
    perform pgcombine_internal.place_shard(switch_shard.queue, switch_shard.shard);
end
$$;
