-- pgcombine.bucket_status(queue, bucket) → (backlog, lag_seconds)
-- Pending updates of a bucket, and the age of the oldest in seconds, to about a second (see time_of): it counts
-- from when the transaction that enqueued it began to write. Where no worker runs and nobody has looked before,
-- the age is at least the one that is told. 0 if there are none.
-- Runs with its owner's rights, for who may use the queue in any way.
-- Errors: PC001 unknown queue; 42501 the caller may not use it. PC099 rolls back, and goes no further.
create or replace function pgcombine.bucket_status(queue text, bucket integer, out backlog bigint, out lag_seconds double precision)
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _oldest integer;
    _since timestamptz;
begin
    perform pgcombine.require_right(bucket_status.queue, 'use', pgcombine.caller());
    begin
        execute format(
            case when pgcombine.packs(bucket_status.queue)
                 then 'select count(*) + coalesce(sum(cardinality(u.pgcombine_0)), 0), max(age(u.xmin)) from %s u %s'
                 else 'select count(*), max(age(u.xmin)) from %s u %s' end,
            (pgcombine.bucket_tables(bucket_status.queue, bucket_status.bucket))[1],
            'where ' || nullif(pgcombine.bucket_slice(bucket_status.queue, bucket_status.bucket), ''))
        into backlog, _oldest;
        raise sqlstate 'PC099'; -- ends the lock of the table: see busy
    exception when sqlstate 'PC099' then null;
    end;
    lag_seconds := 0;
    if backlog > 0 then
        -- What was folded is older than the row that it is in now. Such a row was written together with since, or
        -- before; where all rows are younger, since tells of updates that are gone.
        select b.since into _since from pgcombine.bucket b
        where b.queue = bucket_status.queue and b.bucket = bucket_status.bucket and age(b.xmin) <= _oldest;
        lag_seconds := greatest(0, extract(epoch from
            clock_timestamp() - least(_since, pgcombine.time_of(_oldest), clock_timestamp())));
    end if;
end
$$;
