-- pgcombine_internal.drop_shard(queue, fenced)
-- Drops the queue that a shard was on a node, if it is there.
--   fenced  whether only a queue that refuses updates is dropped (see fence_shard)
-- Errors: PC003 the queue accepts updates.
create or replace function pgcombine_internal.drop_shard(queue text, fenced boolean)
returns void
language plpgsql
as $$
begin
    if exists (select from pgcombine.queue q where q.queue = drop_shard.queue) then
        perform pgcombine_internal.require(
            not drop_shard.fenced or pgcombine_internal.fenced(drop_shard.queue), 'PC003',
            format('queue "%s" of database "%s" is in use, so it isn''t dropped', drop_shard.queue, current_database()),
            'the catalog of the front is older than its nodes: set pgcombine.front_shard right');
        perform pgcombine.drop_queue(drop_shard.queue, force => true);
    end if;
end
$$;
