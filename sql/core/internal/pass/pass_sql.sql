-- pgcombine_internal.pass_sql(queue, bucket) → text
-- Returns the statement of passes over a bucket. pass_template explains it and its parameters.
--   queue  the queue's row, with the statement that regenerate_pass has made
create or replace function pgcombine_internal.pass_sql(queue pgcombine.queue, bucket integer)
returns text
language sql immutable
as $$
    select replace(replace((queue).statement, '{pgcombine_partition}',
        to_char(bucket % (queue).partitions, 'FM0000')), '{pgcombine_bucket}', bucket::text)
$$;
