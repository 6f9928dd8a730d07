-- pgcombine_internal.inserted(queue, bucket) → bigint
-- Returns the number of rows inserted into the segments of a bucket's partition since counted_since. Rows of other
-- buckets in the partition count, too. The journal stores the number for the trigger refuse_backlog. The function reads
-- statistics, which are up to a second or so old.
create or replace function pgcombine_internal.inserted(queue text, bucket integer)
returns bigint
language sql stable
as $$
    select sum(pg_stat_get_tuples_inserted(s::regclass))::bigint
    from pgcombine.queue q
    cross join unnest(pgcombine_internal.segment_tables(q.queue, inserted.bucket % q.partitions)) s
    where q.queue = inserted.queue
$$;
