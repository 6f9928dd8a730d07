-- pgcombine_internal.taken_sql(queue, bucket, place) → text
-- Returns the condition that selects the updates which a pass takes in a segment: the new mark sees them, and their
-- key's mark doesn't. pass_sql has the parameters. PostgreSQL evaluates ($7)[place] once, before it scans the segment.
-- So the statement names all segments, and a pass scans those that may hold pending updates. It evaluates the lowest id
-- that may be pending once, too. Most combined updates are below it, and cost a comparison. "is not true" keeps the
-- planner from expecting few rows.
--   queue  the queue's row
--   place  the number of the segment, from 1
create or replace function pgcombine_internal.taken_sql(queue pgcombine.queue, bucket integer, place integer)
returns text
language sql stable
as $$
    select format('($7)[%s] and (pgcombine_tx < (select min(txid_snapshot_xmin(m)) from unnest($4) m)) is not true
      and txid_visible_in_snapshot(pgcombine_tx, $6)
      and not txid_visible_in_snapshot(pgcombine_tx, ($4)[case when $5 = 0 then 1 else 1 + (%s & $5) end])
      and ($8 = 0 or %s & $8 = $9)%s', place, (queue).pass ->> 'hash', (queue).pass ->> 'hash',
        case when (queue).partitions < (queue).buckets
            then ' and ' || pgcombine_internal.bucket_slice((queue).queue, bucket) end)
$$;
