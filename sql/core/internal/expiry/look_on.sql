-- pgcombine_internal.look_on(queue, bucket, first, next [, pause, sqlstate, error]) → next page
-- Notes that the look for expired keys of a bucket goes on with the page next after a pause. Behind the last page the
-- next look begins after expire_every, and the result is null. A failure of pages is forgotten when they have been
-- looked through, or are gone.
--   first            the first page that the pass has looked through
--   sqlstate, error  why it removed none of the expired keys from first on
-- Tables written: expiry.
create or replace function pgcombine_internal.look_on(queue text, bucket integer, first bigint, next bigint,
    pause interval default '0 s', sqlstate text default null, error text default null)
returns bigint
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(look_on.queue);
    _values constant regclass :=
        pgcombine_internal.values_table(_queue.queue, look_on.bucket % _queue.partitions);
    _ends constant boolean := look_on.next * current_setting('block_size')::bigint >= pg_relation_size(_values);
    _failed constant boolean := look_on.error is not null;
begin
    insert into pgcombine.expiry as r (queue, bucket, page, due)
    values (_queue.queue, look_on.bucket, case when _ends then 0 else look_on.next end,
            clock_timestamp() + case when _ends then _queue.expire_every else look_on.pause end)
    on conflict on constraint expiry_pkey do update set page = excluded.page, due = excluded.due;
    update pgcombine.expiry r
    set sqlstate = look_on.sqlstate, error = look_on.error,
        failed_at = case when _failed then clock_timestamp() end, failed_page = case when _failed then look_on.first end
    where (r.queue, r.bucket) = (_queue.queue, look_on.bucket)
      and (_failed or r.failed_page >= look_on.first and (r.failed_page < look_on.next or _ends));
    return case when not _ends then look_on.next end;
end
$$;
