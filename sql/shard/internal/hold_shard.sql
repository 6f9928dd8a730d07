-- pgcombine_internal.hold_shard(queue)
-- Keeps passes, rebucket and new definitions away from the queue of a shard until the transaction ends.
-- Errors: 40001 updates are pending; those of claim_buckets and require_movable.
create or replace function pgcombine_internal.hold_shard(queue text)
returns void
language plpgsql
as $$
begin
    perform pgcombine_internal.claim_buckets(hold_shard.queue, 'move of a shard');
    perform pgcombine_internal.require_movable(hold_shard.queue);
    perform pgcombine_internal.require(pgcombine.backlog(hold_shard.queue) = 0, '40001',
        format('updates of queue "%s" are pending again', hold_shard.queue), 'run the command again');
end
$$;
