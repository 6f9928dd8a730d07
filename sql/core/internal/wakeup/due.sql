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
    from pgcombine.queue q
    join pgcombine.bucket b using (queue)
    left join pgcombine.failure f using (queue, bucket)
    left join pgcombine.expiry r using (queue, bucket)
    where not q.paused and (due.queue is null or q.queue = due.queue)
      and (f.retry_at > clock_timestamp()) is not true
      and (f.queue is not null
           or q.expire_when is not null and (r.due <= clock_timestamp()) is not false
           or q.max_backlog is not null and pgcombine_internal.uncounted(b.queue, b.bucket)
           or (b.queue, b.bucket) in (select w.queue, w.bucket from pgcombine_internal.busy(due.queue) w))
      and pgcombine_internal.has_right(q.queue, 'work')
$$;
