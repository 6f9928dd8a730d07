-- pgcombine.refuse_backlog() trigger, before insert, statement level, on <queue>_updates; arguments: the queue,
-- its max_backlog
-- Refuses enqueues while about so many updates are pending or more. The number is what the statistics say, which
-- costs a look into shared memory for each partition: they follow within a second or so, a statement or a COPY
-- that comes in below the limit may go beyond it, and after a crash of the server they start from nothing until
-- the tables are analyzed.
-- Errors: PC010.
create or replace function pgcombine.refuse_backlog()
returns trigger
language plpgsql
as $$
declare
    _pending constant bigint := (select sum(pg_stat_get_live_tuples(i.inhrelid)) from pg_inherits i where i.inhparent = tg_relid);
begin
    if _pending >= tg_argv[1]::bigint then
        raise exception 'queue "%" is full: about % updates are pending, its maximum backlog is %', tg_argv[0], _pending, tg_argv[1]
            using errcode = 'PC010', hint = 'do workers run? try again when they have caught up';
    end if;
    return null;
end
$$;
