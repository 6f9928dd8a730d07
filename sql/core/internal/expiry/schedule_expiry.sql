-- pgcombine_internal.schedule_expiry(queue, bucket, first, next [, pause, sqlstate, error]) → next page
-- Records where and when the scan of a bucket for expired keys continues. Returns next, or null if that is beyond the
-- last page: a new scan then begins after expire_every. A recorded failure is cleared once its pages have been scanned,
-- or no longer exist.
--   first, next      the scan has finished the pages from first to the page before next, and continues at next
--   pause            how long the scan waits before it continues
--   sqlstate, error  why no expired keys were removed from these pages; null: they were removed
-- Tables written: pgcombine.expiry.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.schedule_expiry(queue text, bucket integer, first bigint, next bigint,
    pause interval default '0 s', sqlstate text default null, error text default null)
returns bigint
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(schedule_expiry.queue);
    _values constant regclass :=
        pgcombine_internal.values_table(_queue.queue, schedule_expiry.bucket % _queue.partitions);
    _ends constant boolean := schedule_expiry.next * current_setting('block_size')::bigint >= pg_relation_size(_values);
    _failed constant boolean := schedule_expiry.error is not null;
begin
    insert into pgcombine.expiry as r (queue, bucket, page, due)
    values (_queue.queue, schedule_expiry.bucket, case when _ends then 0 else schedule_expiry.next end,
            clock_timestamp() + case when _ends then _queue.expire_every else schedule_expiry.pause end)
    on conflict on constraint expiry_pkey do update set page = excluded.page, due = excluded.due;
    update pgcombine.expiry r
    set sqlstate = schedule_expiry.sqlstate, error = schedule_expiry.error,
        failed_at = case when _failed then clock_timestamp() end, failed_page = case when _failed
            then schedule_expiry.first end
    where (r.queue, r.bucket) = (_queue.queue, schedule_expiry.bucket)
      and (_failed or r.failed_page >= schedule_expiry.first and (r.failed_page < schedule_expiry.next or _ends));
    return case when not _ends then schedule_expiry.next end;
end
$$;
