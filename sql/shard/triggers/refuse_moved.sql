-- pgcombine_internal.refuse_moved() trigger, before insert, statement level, on <queue>_updates and <queue>_values
-- Its argument is the queue.
-- Refuses updates and values of a shard that is being moved to another node.
-- Errors: PC015 the shard is being moved.
create or replace function pgcombine_internal.refuse_moved()
returns trigger
language plpgsql
as $$
begin
    raise exception 'queue "%" is being moved to another node', tg_argv[0]
        using errcode = 'PC015',
            hint = 'retry through the front; pgcombine queue move-shard ends a move that was killed';
end
$$;
