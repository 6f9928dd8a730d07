-- pgcombine.combine_sql(queue, bucket) → text
-- Returns the statement that passes over a bucket run. Read the statement, or pass it to explain (generic_plan), which
-- PostgreSQL 16 and later have. pass_template explains its parameters. For Python observers run_pass appends a text,
-- with which the statement also returns the changes (see python_sql).
-- Errors: PC001 unknown queue; PC003 the queue has no such bucket.
create or replace function pgcombine.combine_sql(queue text, bucket integer)
returns text
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
begin
    perform pgcombine_internal.require(bucket between 0 and _queue.buckets - 1, 'PC003',
        format('queue "%s" has no bucket %s', _queue.queue, coalesce(bucket::text, 'null')),
        format('its buckets are 0 to %s', _queue.buckets - 1));
    return pgcombine_internal.pass_sql(_queue, bucket);
end
$$;
