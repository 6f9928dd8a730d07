-- pgcombine_internal.pass_sql(queue, bucket, few) → text
-- Returns the statement of passes over a bucket. pass_template explains it and its parameters.
--   queue  the queue's row, with the statements that regenerate_pass has made
--   few    the statement for few updates
create or replace function pgcombine_internal.pass_sql(queue pgcombine.queue, bucket integer, few boolean)
returns text
language sql immutable
as $$
    select replace(replace((queue).statements[case when few then 1 else 2 end],
        '{pgcombine_partition}', to_char(bucket % (queue).partitions, 'FM0000')), '{pgcombine_bucket}', bucket::text)
$$;
