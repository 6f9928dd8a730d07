-- pgcombine_internal.forget_failure(queue, bucket [, settled])
-- Forgets that passes over a bucket failed: a pass has taken all, or the keys at fault are quarantined. If the pass
-- that failed removed expired keys as well, and this one didn't, their pages are at fault: the look goes on behind
-- them. A role that may delete from a table may lock it against all others, so only the owner may delete. A role that
-- may run passes over the queue marks the row, which policies permit, and delete_flagged deletes it.
--   settled  whether nothing is left to do. False: the search for keys at fault has made progress, so the bucket is due
--            at once
-- Tables written: pgcombine.failure, expiry.
create or replace function pgcombine_internal.forget_failure(queue text, bucket integer, settled boolean default true)
returns void
language plpgsql
as $$
declare
    _failure pgcombine.failure;
begin
    update pgcombine.failure f
    set attempts = case when settled then 0 else f.attempts end,
        retry_at = case when settled then f.retry_at else clock_timestamp() end
    where f.queue = forget_failure.queue and f.bucket = forget_failure.bucket
    returning f.* into _failure;
    if found and settled then
        if _failure.page is not null then
            perform pgcombine_internal.schedule_expiry(_failure.queue, _failure.bucket, _failure.page,
                _failure.page + 1024,
                '0 s', _failure.sqlstate, _failure.error);
        end if;
        perform pgcombine_internal.delete_flagged();
    end if;
end
$$;
