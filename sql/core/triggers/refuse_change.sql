-- pgcombine_internal.refuse_change() trigger, before update, delete or truncate, statement level, on <queue>_updates;
--   argument: the queue
-- Refuses changes of the log, which would lose pending updates. The log is reclaimed by its partitions, so the trigger
-- doesn't see that.
-- Errors: PC014 always.
create or replace function pgcombine_internal.refuse_change()
returns trigger
language plpgsql
as $$
begin
    raise exception 'pgcombine.%_updates only takes inserts', tg_argv[0]
        using errcode = 'PC014',
            hint = format('to take an update back, enqueue its opposite; select pgcombine.truncate_queue(%L) removes '
                'all updates and values', tg_argv[0]);
end
$$;
