-- pgcombine_internal.bucket_condition(queue, bucket) → text
-- Returns the condition that selects a bucket's keys among those of the other buckets in its partition. The condition
-- is empty if the bucket doesn't share its partition.
-- A key meets the condition if PostgreSQL's hash partitioning, with as many partitions as the queue has buckets, would
-- put the key into the partition with the bucket's number. The number of partitions divides the number of buckets, so
-- all keys of a bucket are in partition bucket % partitions.
create or replace function pgcombine_internal.bucket_condition(queue text, bucket text)
returns text
language sql stable
as $$
    select case when q.partitions = q.buckets then '' else
        format('satisfies_hash_partition(%s::oid, %s, %s, %s)',
            quote_literal(format('pgcombine.%I', q.queue || '_values')) || '::regclass', q.buckets,
                bucket_condition.bucket,
            pgcombine_internal.column_list(q.queue, 'key'))
        end
    from pgcombine.queue q
    where q.queue = bucket_condition.queue
$$;
