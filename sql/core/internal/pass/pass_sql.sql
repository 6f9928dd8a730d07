-- pgcombine_internal.pass_sql(queue, bucket, small_batch) → text
-- Returns the statement of passes over a bucket. pass_template explains it and its parameters.
--   queue        the queue's row, with the statements that regenerate_pass has made
--   small_batch  whether to return the statement for few updates
create or replace function pgcombine_internal.pass_sql(queue pgcombine.queue, bucket integer, small_batch boolean)
returns text
language sql immutable
as $$
    select replace(replace((queue).statements[case when small_batch then 1 else 2 end],
        '{pgcombine_partition}', to_char(bucket % (queue).partitions, 'FM0000')), '{pgcombine_bucket}', bucket::text)
$$;
