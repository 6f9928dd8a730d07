-- pgcombine_internal.drop_shard(queue, fenced)
-- Drops the queue that a shard has left behind on this node, or that an unfinished move has made here, if it exists.
--   fenced  whether only a queue that refuses updates is dropped (see fence_shard). False: also one without pending
--           updates, over which no pass has combined updates: a copy that no writer has used
-- Errors: PC003 the queue is in use; those of drop_queue with force.
create or replace function pgcombine_internal.drop_shard(queue text, fenced boolean)
returns void
language plpgsql
as $$
begin
    if exists (select from pgcombine.queue q where q.queue = drop_shard.queue) then
        perform pgcombine_internal.require(
            pgcombine_internal.fenced(drop_shard.queue)
            or not drop_shard.fenced and pgcombine.backlog(drop_shard.queue) = 0
               and not exists (select from pgcombine.pass p where p.queue = drop_shard.queue and p.updates > 0),
            'PC003', format('queue "%s" of database "%s" is in use, so it isn''t dropped', drop_shard.queue,
                current_database()),
            'the catalog of the front may be older than its nodes: find out which node has the shard, and '
            'correct its row in pgcombine.front_shard');
        perform pgcombine.drop_queue(queue, force => true);
    end if;
end
$$;
