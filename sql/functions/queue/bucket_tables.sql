-- pgcombine.bucket_tables(queue, bucket) → {updates, values}
-- The quoted names of a bucket's pair of tables. Where several buckets share a pair, bucket_slice tells them apart.
-- Null: no such queue.
create or replace function pgcombine.bucket_tables(queue text, bucket integer)
returns text[]
language sql stable
as $$
    select pgcombine.partition_tables(q.queue, bucket_tables.bucket % q.partitions)
    from pgcombine.queue q
    where q.queue = bucket_tables.queue
$$;
