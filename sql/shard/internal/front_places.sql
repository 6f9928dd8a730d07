-- pgcombine_internal.front_places(queue) → (name, node, address)
-- Returns the shards of a front in order, for programs that write straight to the nodes: the name of the shard's queue,
-- its node, and the node's connection parameters (see node_address).
-- Errors: PC001 unknown front; those of node_address.
create or replace function pgcombine_internal.front_places(queue text)
returns table (name text, node text, address jsonb)
language plpgsql stable
as $$
begin
    perform pgcombine_internal.require_front(front_places.queue);
    return query
        select pgcombine_internal.shard_name(s.queue, s.shard), s.node::text,
            pgcombine_internal.node_address(s.node::text)
        from pgcombine.front_shard s where s.queue = front_places.queue order by s.shard;
end
$$;
