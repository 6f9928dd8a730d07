-- pgcombine_internal.backlog_reached(queue, backlog) → boolean
-- Returns whether at least backlog updates are pending, for refuse_backlog.
-- They are counted only if the statistics show that so many rows were inserted since the last passes. Reading these
-- costs a look at the journal and at shared memory for each bucket. Statistics are up to a second or so old, so a
-- statement may go beyond the limit. After a crash they start from nothing.
-- Runs with its owner's rights, for roles with any right on the queue.
-- Errors: PC001 unknown queue; 42501 the caller has no right on the queue.
create or replace function pgcombine_internal.backlog_reached(queue text, backlog bigint)
returns boolean
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _pending bigint;
begin
    perform pgcombine_internal.require_right(backlog_reached.queue, 'use', pgcombine_internal.caller());
    select sum(greatest(0, pgcombine_internal.inserted(b.queue, b.bucket) - coalesce(p.inserted, 0)) / (q.buckets / q.partitions)) into _pending
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
