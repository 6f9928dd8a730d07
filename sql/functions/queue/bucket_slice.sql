-- pgcombine.bucket_slice(queue, bucket) → text
-- The condition by which a bucket's keys are told from those of the other buckets in its pair of tables; empty
-- where it has the pair for itself. It is PostgreSQL's own routing, for as many partitions as there are buckets:
-- since the number of pairs divides that of buckets, such a slice is wholly in pair bucket % partitions.
create or replace function pgcombine.bucket_slice(queue text, bucket integer)
returns text
language sql stable
as $$
    select case when q.partitions = q.buckets then '' else
        format('satisfies_hash_partition(%s::oid, %s, %s, %s)',
            quote_literal(format('pgcombine.%I', q.queue || '_updates')) || '::regclass', q.buckets, bucket_slice.bucket,
            pgcombine.column_list(q.queue, 'key'))
        end
    from pgcombine.queue q
    where q.queue = bucket_slice.queue
$$;
