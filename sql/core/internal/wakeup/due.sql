-- pgcombine_internal.due([queues]) → (queue, bucket)
-- Lists the buckets over which a worker should run a pass now: those with pending updates (see busy), those with a
-- recorded failure (see fail_pass), and those that are due for a scan for expired keys. The function leaves out paused
-- queues, and buckets with a failure whose retry_at is in the future. A bucket with a failure may have no pending
-- updates, for example if another pass took all of them before the failure was recorded. Then a pass that takes no
-- updates deletes the record (see forget_failure).
--   queues  in which to look for pending updates, which takes time for each queue. Null: in all queues
create or replace function pgcombine_internal.due(queues text[] default null, out queue text, out bucket integer)
returns setof record
language sql stable
as $$
    select d.queue, d.bucket
    from (select b.queue, b.bucket from pgcombine.failure x join pgcombine.bucket b using (queue, bucket)
          union
          select b.queue, b.bucket
          from pgcombine.queue e
          join pgcombine.bucket b using (queue)
          left join pgcombine.expiry r using (queue, bucket)
          where e.expire_when is not null and (r.due <= clock_timestamp()) is not false
          union
          select w.queue, w.bucket
          from unnest(coalesce(due.queues, array[null])) n (name)
          cross join lateral pgcombine_internal.busy(n.name) w) d
    join pgcombine.queue q using (queue)
    left join pgcombine.failure f using (queue, bucket)
    where not q.paused and (f.retry_at > clock_timestamp()) is not true
$$;
