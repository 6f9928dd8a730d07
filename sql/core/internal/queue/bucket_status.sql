-- pgcombine_internal.bucket_status(queue, bucket) → (backlog, lag_seconds)
-- Returns the number of a bucket's pending updates, and the age of the oldest one in seconds (see time_of). Without
-- pending updates both are 0.
-- Runs with its owner's rights, for roles that monitor or work.
-- Errors: PC001 unknown queue; 42501 the caller lacks the right monitor.
create or replace function pgcombine_internal.bucket_status(queue text, bucket integer, out backlog bigint,
    out lag_seconds double precision)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.require_right(null, 'monitor', pgcombine_internal.caller());
    select p.pending, greatest(0, extract(epoch from clock_timestamp() - pgcombine_internal.time_of(p.oldest)))
    into backlog, lag_seconds
    from pgcombine_internal.bucket_pending(bucket_status.queue, bucket_status.bucket) p;
end
$$;
