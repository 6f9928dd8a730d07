-- pgcombine.refuse_backlog() trigger, before insert, statement level, on <queue>_updates; arguments: the queue,
-- its max_backlog
-- Refuses enqueues while so many updates are pending or more. They are counted only where the statistics say that so many
-- rows were inserted since the last passes: that costs a look at the journal and into shared memory for each bucket.
-- Statistics follow within a second or so: a statement or a COPY that comes in below the limit may go beyond it. After a
-- crash of the server they start from nothing until a pass has run.
-- Runs with its owner's rights.
-- Errors: PC010.
create or replace function pgcombine.refuse_backlog()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _limit constant bigint := tg_argv[1];
    _pending bigint;
begin
    select sum(greatest(0, pgcombine.inserted(b.queue, b.bucket) - coalesce(p.inserted, 0)) / (q.buckets / q.partitions)) into _pending
    from pgcombine.queue q
    join pgcombine.bucket b using (queue)
    cross join lateral (
        select p.inserted from pgcombine.pass p where p.queue = b.queue and p.bucket = b.bucket order by p.pass desc limit 1) p
    where q.queue = tg_argv[0];
    if _pending >= _limit then
        execute format('select count(*) from (select from pgcombine.%I limit %s) as pending', tg_argv[0] || '_pending', _limit) into _pending;
        if _pending >= _limit then
            raise exception 'queue "%" is full: its maximum backlog is %', tg_argv[0], _limit
                using errcode = 'PC010', hint = 'do workers run? try again when they have caught up';
        end if;
    end if;
    return null;
end
$$;
