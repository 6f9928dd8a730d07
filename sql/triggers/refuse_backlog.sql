-- pgcombine_internal.refuse_backlog() trigger, before insert, statement level, on <queue>_updates; arguments: the queue, its max_backlog
-- Refuses enqueues while max_backlog or more updates are pending (see backlog_reached).
-- Errors: PC010 the queue is full.
create or replace function pgcombine_internal.refuse_backlog()
returns trigger
language plpgsql
as $$
begin
    if pgcombine_internal.backlog_reached(tg_argv[0], tg_argv[1]::bigint) then
        raise exception 'queue "%" is full: its maximum backlog is %', tg_argv[0], tg_argv[1]
            using errcode = 'PC010', hint = 'check that workers run, and try again when they have caught up';
    end if;
    return null;
end
$$;
