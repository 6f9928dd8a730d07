-- pgcombine_internal.begin_move(queue, shard, node) → (name, source, target, former)
-- Locks a shard against other moves until the session ends, and checks that it can be moved to a node.
--   name    the name of the shard's queue
--   source  the node that has the shard
--   target  the node of an earlier move that hasn't switched the shard to it; null: there is no such move
--   former  see front_shard
-- A move to the source cancels that earlier move.
-- Errors: PC001 unknown front; PC003 unknown shard or server, or the shard is on its way to another node; PC006 another
-- session moves the shard; 42501 the caller doesn't own the schema.
create or replace function pgcombine_internal.begin_move(queue text, shard integer, node text, out name text,
    out source text, out target text, out former text)
language plpgsql
as $$
declare
    _front constant pgcombine.front := pgcombine_internal.require_front(queue);
begin
    perform pgcombine_internal.require_owner();
    perform pgcombine_internal.require(shard between 0 and _front.shards - 1, 'PC003',
        format('front "%s" has no shard %s', _front.queue, shard),
        format('its shards: 0 to %s', _front.shards - 1));
    perform pgcombine_internal.require(exists (
        select from pg_foreign_server s join pg_foreign_data_wrapper w on w.oid = s.srvfdw
        where s.srvname = node and w.fdwname = 'postgres_fdw'), 'PC003',
        format('there is no server "%s" of postgres_fdw', node), 'create server makes it');
    name := pgcombine_internal.shard_name(_front.queue, shard);
    perform pgcombine_internal.lock_move('pgcombine.front_shard', name);
    select s.node, s.target, s.former into source, target, former
    from pgcombine.front_shard s where (s.queue, s.shard) = (_front.queue, begin_move.shard);
    perform pgcombine_internal.require(former is not null or coalesce(target, node) = node or node = source, 'PC003',
        format('shard %s of "%s" is on its way to node "%s"', shard, _front.queue, target),
        format('end that move, or cancel it: move the shard to node "%s"', source));
end
$$;
