-- pgcombine.backlog_reached(queue, backlog) → boolean
-- Whether so many updates are pending or more, for refuse_backlog. They are counted only where the statistics, which follow
-- within a second or so, say that so many rows were inserted since the last passes: that costs a look at the journal and into
-- shared memory for each bucket. So a statement may go beyond the limit. After a crash statistics start from nothing.
-- Runs with its owner's rights, for who may use the queue in any way.
-- Errors: PC001 unknown queue; 42501 the caller may not use it.
create or replace function pgcombine.backlog_reached(queue text, backlog bigint)
returns boolean
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _pending bigint;
begin
    perform pgcombine.require_right(backlog_reached.queue, 'use', pgcombine.caller());
    select sum(greatest(0, pgcombine.inserted(b.queue, b.bucket) - coalesce(p.inserted, 0)) / (q.buckets / q.partitions)) into _pending
    from pgcombine.queue q
    join pgcombine.bucket b using (queue)
    cross join lateral (
        select p.inserted from pgcombine.pass p where p.queue = b.queue and p.bucket = b.bucket order by p.pass desc limit 1) p
    where q.queue = backlog_reached.queue;
    if _pending >= backlog_reached.backlog then
        execute format('select count(*) from (select from pgcombine.%I limit %s) as pending', backlog_reached.queue || '_pending',
            backlog_reached.backlog) into _pending;
    end if;
    return _pending >= backlog_reached.backlog;
end
$$;
