-- pgcombine.status
-- One row for each queue: the exact number of its pending updates, and the age of the oldest. The view counts each row,
-- so reading it costs more than reading queue_stat. Only roles with the right monitor or work can read it.
-- Quarantined updates aren't pending, and neither <queue>_values nor <queue>_current contains them. Workers keep trying
-- a failing bucket (see fail_pass).
--   queue             name of the queue
--   buckets           number of buckets
--   paused            whether no pass runs over the queue
--   backlog           exact number of pending updates
--   lag_seconds       age of the oldest of them, also in a paused queue (see bucket_status and time_of)
--   quarantined_keys  number of quarantined keys
--   quarantined_updates      number of their updates, which aren't pending
--   failing_buckets   number of buckets where a pass has failed and none has taken all updates since
create or replace view pgcombine.status as
select q.queue, q.buckets, q.paused, s.backlog, s.lag_seconds, h.quarantined_keys, h.quarantined_updates,
       (select count(*) from pgcombine.failure f where f.queue = q.queue) as failing_buckets
from pgcombine.queue q
cross join lateral (
    select sum(s.backlog)::bigint as backlog, max(s.lag_seconds) as lag_seconds
    from pgcombine.bucket b cross join lateral pgcombine_internal.bucket_status(b.queue, b.bucket) s
    where b.queue = q.queue
) s
cross join lateral (
    select count(*) as quarantined_keys, coalesce(sum(k.updates), 0)::bigint as quarantined_updates
    from pgcombine.quarantined_key k where k.queue = q.queue
) h;
