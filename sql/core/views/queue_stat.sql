-- pgcombine.queue_stat
-- One row for each queue: how much is pending, how old it is, and what recent passes have done. Reading the view each
-- second is cheap: its numbers of pending updates are kept for up to a minute (see the function sample). The view
-- status counts anew.
--   queue                  name of the queue
--   buckets                number of buckets
--   paused                 whether no pass runs over the queue
--   pending                number of pending updates at pending_at
--   lag_seconds            age of the oldest pending update, also in a paused queue; 0 if none is pending
--   updates_per_second_1m  updates that passes took in the last minute, as an average per second
--   keys_per_second_1m     keys that passes combined in the last minute, as an average per second
--   changes_per_second_1m  keys whose values passes changed in the last minute, as an average per second
--   passes_1m              number of passes that took updates in the last minute
--   pass_seconds_p50       median duration of these passes; null if there was none
--   pass_seconds_p99       99th percentile of these durations
--   last_pass_at           when the last pass in the journal that took updates ended; null if there is none
--   failing_buckets        number of buckets where a pass has failed and none has taken all updates since
--   quarantined_keys       number of quarantined keys
--   quarantined_updates           number of their updates, which aren't pending
--   pending_at             when pending was counted; null if it never was, since another session keeps the tables
--                          locked
create or replace view pgcombine.queue_stat as
select q.queue, q.buckets, q.paused, a.pending,
       coalesce(greatest(0, date_part('epoch', clock_timestamp() - a.since)), 0) as lag_seconds,
       m.updates / 60.0::double precision as updates_per_second_1m,
       m.keys / 60.0::double precision as keys_per_second_1m,
       m.changes / 60.0::double precision as changes_per_second_1m,
       m.passes as passes_1m, m.seconds[1] as pass_seconds_p50, m.seconds[2] as pass_seconds_p99,
       t.ended as last_pass_at,
       coalesce(f.buckets, 0) as failing_buckets, coalesce(k.keys, 0) as quarantined_keys,
       coalesce(k.updates, 0) as quarantined_updates, n.at as pending_at
from pgcombine_internal.sample('pending') n
join pgcombine.queue q using (queue)
cross join lateral (
    select coalesce(sum(b.pending), 0)::bigint as pending,
           -- If the count is old, another session keeps the tables locked, so updates may be pending since then.
           coalesce(min(greatest(b.since, l.began)), case
               when n.at < clock_timestamp() - interval '15 seconds' then n.at end) as since
    from jsonb_to_recordset(n.figures) b (bucket integer, pending bigint, since timestamptz)
    -- if a pass over all keys has ended since the count, the counted updates are combined: those that are pending now
    -- came after that pass began
    left join lateral (
        select p.began, p.ended, p.range_mask from pgcombine.pass p where p.queue = q.queue and p.bucket = b.bucket
            order by p.pass desc limit 1
    ) l on l.ended > n.at and l.range_mask is null
) a
-- a pass without updates is only a new mark
left join lateral (
    select p.ended from pgcombine.pass p where p.queue = q.queue and p.updates > 0 order by p.ended desc limit 1
) t on true
cross join lateral (
    select count(*) as passes, coalesce(sum(p.updates), 0) as updates, coalesce(sum(p.keys), 0) as keys,
           coalesce(sum(p.changes), 0) as changes,
           -- one call sorts once for both percentiles
           percentile_disc(array[0.5, 0.99]) within group (order by date_part('epoch', p.ended - p.began)) as seconds
    from pgcombine.pass p
    where p.queue = q.queue and p.updates > 0 and p.ended > now() - interval '1 minute'
) m
left join (select f.queue, count(*) as buckets from pgcombine.failure f group by f.queue) f using (queue)
left join (select k.queue, count(*) as keys, sum(k.updates)::bigint as updates from pgcombine.quarantined_key k
    group by k.queue) k using (queue);
