-- pgcombine_internal.forget_failure(queue, bucket [, finished])
-- Forgets that passes over a bucket failed: a pass has taken all updates, or the failing keys are quarantined. Passes
-- after a failure remove no expired keys. So if the first failed pass removed some, the function takes their pages for
-- the cause of the failure. The scan then continues after these pages.
-- Only the schema's owner may delete the row, since a role with the right to delete could lock the table against all
-- others. A role that may run passes over the queue flags the row, which policies permit, and delete_flagged deletes
-- it.
--   finished  whether nothing is left to do. False: the search for failing keys has made progress, so the bucket is due
--            at once
-- Tables written: pgcombine.failure, expiry.
create or replace function pgcombine_internal.forget_failure(queue text, bucket integer, finished boolean default true)
returns void
language plpgsql
as $$
declare
    _failure pgcombine.failure;
begin
    update pgcombine.failure f
    set attempts = case when finished then 0 else f.attempts end,
        retry_at = case when finished then f.retry_at else clock_timestamp() end
    where f.queue = forget_failure.queue and f.bucket = forget_failure.bucket
    returning f.* into _failure;
    if found and finished then
        if _failure.page is not null then
            perform pgcombine_internal.schedule_expiry(_failure.queue, _failure.bucket, _failure.page,
                _failure.page + 1024,
                '0 s', _failure.sqlstate, _failure.error);
        end if;
        perform pgcombine_internal.delete_flagged();
    end if;
end
$$;
