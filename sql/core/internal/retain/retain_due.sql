-- pgcombine_internal.retain_due([queues]) → (queue, bucket)
-- Lists the buckets that a worker should look through for expired keys now, in random order: those whose time has come, of
-- queues with a condition that aren't paused and over which the caller may run passes. Buckets whose last pass failed a
-- short while ago are left out.
--   queues  null: all
create or replace function pgcombine_internal.retain_due(queues text[] default null, out queue text, out bucket integer)
returns setof record
language sql volatile
as $$
    select b.queue, b.bucket
    from pgcombine.queue q
    join pgcombine.bucket b using (queue)
    left join pgcombine.retention r on r.queue = b.queue and r.bucket = b.bucket
    where q.retain is not null and not q.paused and (retain_due.queues is null or q.queue = any (retain_due.queues))
      and coalesce(r.due, '-infinity') <= clock_timestamp()
      and not exists (
          select from pgcombine.failure f where f.queue = b.queue and f.bucket = b.bucket and f.retry_at > clock_timestamp())
      and pgcombine_internal.has_right(q.queue, 'work')
    order by random()
$$;
