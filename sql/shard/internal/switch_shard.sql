-- pgcombine_internal.switch_shard(queue, shard)
-- Sets a shard's node to the target of its move, records the former node, and makes the shard's foreign tables for that
-- node (see place_shard).
-- Tables written: pgcombine.front_shard.
create or replace function pgcombine_internal.switch_shard(queue text, shard integer)
returns void
language plpgsql
as $$
begin
    update pgcombine.front_shard s set node = s.target, former = s.node, target = null
    where (s.queue, s.shard) = (switch_shard.queue, switch_shard.shard);
    perform pgcombine_internal.place_shard(queue, shard);
end
$$;
