-- pgcombine_internal.filled_buckets([queue]) → (queue, bucket)
-- Lists the buckets whose segments aren't all empty. Reading the sizes of a bucket's tables is faster than checking the
-- bucket. If a size is null, another session has just exchanged the table, so the bucket is listed.
create or replace function pgcombine_internal.filled_buckets(inout queue text default null, out bucket integer)
returns setof record
language sql stable
as $$
    select b.queue, b.bucket
    from pgcombine.queue q join pgcombine.bucket b using (queue)
    where (filled_buckets.queue is null or q.queue = filled_buckets.queue)
      and exists (
          select from generate_series(0, q.segments - 1) s
          where pg_relation_size(to_regclass(pgcombine_internal.segment_table(q.queue, b.bucket % q.partitions, s)))
                is distinct from 0)
$$;
