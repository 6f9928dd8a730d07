-- pgcombine_internal.refuse_backlog() trigger, before insert, statement level, on <queue>_updates; argument: the queue
-- Refuses enqueues while the queue is full (see check_backlog).
-- Errors: PC010 the queue is full.
create or replace function pgcombine_internal.refuse_backlog()
returns trigger
language plpgsql
as $$
declare
    _limit bigint;
begin
    -- Operators are qualified instead of setting the search path, since each enqueue calls the function.
    select q.max_backlog into _limit from pgcombine.queue q
    where q.queue operator(pg_catalog.=) tg_argv[0] and q.is_full;
    if found then
        raise exception 'queue "%" is full: its maximum backlog is %', tg_argv[0], _limit
            using errcode = 'PC010', hint = 'check that workers run, and try again when they have caught up';
    end if;
    return null;
end
$$;
