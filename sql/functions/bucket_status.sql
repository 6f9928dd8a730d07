-- pgcombine.bucket_status(queue, bucket) → (backlog, lag_seconds)
-- Pending updates of a bucket, and the age of the oldest in seconds; null where the server doesn't keep commit
-- times (track_commit_timestamp = off) or has forgotten them.
create or replace function pgcombine.bucket_status(queue text, bucket integer, out backlog bigint, out lag_seconds double precision)
language plpgsql stable
as $$
declare
    _updates constant text := (pgcombine.bucket_tables(bucket_status.queue, bucket_status.bucket))[1];
    _oldest xid;
begin
    execute format('select count(*) from %s', _updates) into backlog;
    if backlog > 0 and current_setting('track_commit_timestamp')::boolean then
        execute format('select xmin from %s order by age(xmin) desc limit 1', _updates) into _oldest;
        lag_seconds := extract(epoch from clock_timestamp() - pg_xact_commit_timestamp(_oldest));
    elsif backlog = 0 then
        lag_seconds := 0;
    end if;
end
$$;
