-- pgcombine_internal.due([queue]) → (queue, bucket)
-- Lists the buckets over which a worker should run a pass now: those of busy, those with a recorded failure (see
-- fail_pass), and those that are due for a scan for expired keys. The function leaves out paused queues, and buckets
-- with a failure whose retry_at is in the future. A bucket with a failure may have no pending updates, for example if
-- another pass took all of them before the failure was recorded. Then a pass that takes no updates deletes the record
-- (see forget_failure).
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
           or (b.queue, b.bucket) in (select w.queue, w.bucket from pgcombine_internal.busy(due.queue) w))
$$;
