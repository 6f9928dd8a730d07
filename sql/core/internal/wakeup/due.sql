-- pgcombine_internal.due([queue]) → (queue, bucket)
-- Lists the buckets that a worker should pass over now: those of busy, those whose last pass failed, those that are
-- uncounted, and those whose expired keys should be looked for, but none whose last pass failed a short while ago.
-- A bucket that failed may have nothing pending any more, for example if another pass took all before the failure was
-- recorded. A pass that takes nothing deletes the record (see end_pass).
create or replace function pgcombine_internal.due(inout queue text default null, out bucket integer)
returns setof record
language sql stable
as $$
    select b.queue, b.bucket
    from (
        select b.queue, b.bucket from pgcombine_internal.busy(due.queue) b
        union
        select f.queue, f.bucket
        from pgcombine.failure f join pgcombine.queue q using (queue)
        where not q.paused and pgcombine_internal.has_right(f.queue, 'work')
        union
        select b.queue, b.bucket
        from pgcombine.bucket b join pgcombine.queue q using (queue)
        where q.max_backlog is not null and not q.paused and pgcombine_internal.uncounted(b.queue, b.bucket)
          and pgcombine_internal.has_right(b.queue, 'work')
        union
        select b.queue, b.bucket
        from pgcombine.queue q
        join pgcombine.bucket b using (queue)
        left join pgcombine.retention r using (queue, bucket)
        where q.retain is not null and not q.paused and (r.due <= clock_timestamp()) is not false
          and pgcombine_internal.has_right(q.queue, 'work')
    ) b
    where (due.queue is null or b.queue = due.queue) and not exists (
        select from pgcombine.failure f
        where f.queue = b.queue and f.bucket = b.bucket and f.retry_at > clock_timestamp())
$$;
