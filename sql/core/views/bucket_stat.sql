-- pgcombine.bucket_stat
-- One row for each bucket: how much is pending, how old it is, the last pass, and whether passes fail.
--   queue              name of the queue
--   bucket             number of the bucket
--   pending            number of pending updates at pending_at
--   lag_seconds        age of the oldest pending update, also in a paused queue; 0 if none is pending
--   last_pass          number of the last pass in the journal; null if there is none
--   last_pass_at       when the last pass ended
--   last_pass_seconds  how long the last pass took
--   last_pass_updates  number of updates that the last pass took
--   failures           number of passes that have failed since the last pass that took all updates
--   failing_since      when the first of these passes failed
--   retry_at           when workers try again
--   sqlstate           SQLSTATE of the last error
--   pending_at         when pending was counted; null if it never was, since another session keeps the tables locked
create or replace view pgcombine.bucket_stat as
select b.queue, b.bucket, coalesce(a.pending, 0) as pending,
       -- queue_stat explains why a pass after the count matters
       case when a.since is null then 0
            else greatest(0, date_part('epoch', clock_timestamp() - greatest(a.since, case when l.ended > n.at
                and l.range_mask is null then l.began end))) end as lag_seconds,
       l.pass as last_pass, l.ended as last_pass_at, date_part('epoch', l.ended - l.began) as last_pass_seconds,
       l.updates as last_pass_updates, coalesce(f.attempts, 0) as failures, f.since as failing_since,
       f.retry_at, f.sqlstate,
       n.at as pending_at
from pgcombine_internal.sample('pending') n
join pgcombine.queue q using (queue)
join pgcombine.bucket b using (queue)
left join lateral (
    select a.pending, a.since from jsonb_to_recordset(n.figures) a (bucket integer, pending bigint, since timestamptz)
        where a.bucket = b.bucket
) a on true
left join lateral (
    select p.pass, p.began, p.ended, p.updates, p.range_mask
    from pgcombine.pass p where p.queue = b.queue and p.bucket = b.bucket order by p.pass desc limit 1
) l on l.pass > 0
left join pgcombine.failure f on f.queue = b.queue and f.bucket = b.bucket;
