-- pgcombine_internal.bucket_status(queue, bucket) → (backlog, lag_seconds)
-- Returns the number of a bucket's pending updates, and the age of the oldest one in seconds (see time_of). Without
-- pending updates both are 0.
-- Runs with its owner's rights, for roles with any right on the queue.
-- Errors: PC001 unknown queue; 42501 the caller has no right on the queue.
create or replace function pgcombine_internal.bucket_status(queue text, bucket integer, out backlog bigint,
    out lag_seconds double precision)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _log record;
    _oldest bigint;
begin
    perform pgcombine_internal.require_right(bucket_status.queue, 'use', pgcombine_internal.caller());
    select l.tables, l.condition into _log
        from pgcombine_internal.bucket_log(bucket_status.queue, bucket_status.bucket) l;
    backlog := 0;
    if cardinality(_log.tables) > 0 then
        begin
            execute format('select count(*), min(pgcombine_tx) from %s',
                pgcombine_internal.log_sql(bucket_status.queue, _log.tables, _log.condition))
            into backlog, _oldest;
            raise sqlstate 'PC099'; -- the rollback releases the locks on the segments: see busy
        exception when sqlstate 'PC099' then null;
        end;
    end if;
    lag_seconds := greatest(0, extract(epoch from clock_timestamp() - pgcombine_internal.time_of(_oldest)));
end
$$;
