-- pgcombine.combine_sql(queue, bucket) → text
-- Returns the statement that a pass over a bucket would run now, after its claim. Read the statement, or pass it to
-- explain (generic_plan), which PostgreSQL 16 and later have. pass_template explains its parameters. For Python
-- observers run_pass appends a text, with which the statement also returns the changes (see python_sql).
-- Errors: PC001 unknown queue; PC003 the queue has no such bucket.
create or replace function pgcombine.combine_sql(queue text, bucket integer)
returns text
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _plan pgcombine.plan;
begin
    perform pgcombine_internal.require(bucket between 0 and _queue.buckets - 1, 'PC003',
        format('queue "%s" has no bucket %s', _queue.queue, coalesce(bucket::text, 'null')),
        format('its buckets are 0 to %s', _queue.buckets - 1));
    _plan := pgcombine_internal.plan_pass(_queue, combine_sql.bucket,
        array(select o.observer from pgcombine.observer o where o.queue = _queue.queue));
    return pgcombine_internal.pass_sql(_queue, bucket, _plan.batch <> 'large');
end
$$;
