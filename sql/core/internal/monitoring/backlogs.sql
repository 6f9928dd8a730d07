-- pgcombine_internal.backlogs(queue) → jsonb
-- Returns the buckets of a queue that have pending updates, for the function sample: an array of objects with bucket,
-- pending (the number of updates) and since (the time of the oldest one, see time_of).
create or replace function pgcombine_internal.backlogs(queue text)
returns jsonb
language sql
as $$
    select coalesce(jsonb_agg(jsonb_build_object('bucket', b.bucket, 'pending', p.pending, 'since',
                                                 pgcombine_internal.time_of(p.oldest)) order by b.bucket), '[]')
    from pgcombine_internal.filled_buckets(backlogs.queue) b
    cross join lateral pgcombine_internal.bucket_pending(b.queue, b.bucket) p
    where p.pending > 0
$$;
