-- pgcombine_internal.forget_failure(queue, bucket)
-- Forgets that passes over a bucket failed: a pass has taken all updates. Passes after a failure remove no expired
-- keys. So if the first failed pass removed some, the function takes their pages for the cause of the failure. The scan
-- then continues after these pages.
-- Tables written: pgcombine.failure, expiry.
create or replace function pgcombine_internal.forget_failure(queue text, bucket integer)
returns void
language plpgsql
as $$
declare
    _failure pgcombine.failure;
begin
    delete from pgcombine.failure f where f.queue = forget_failure.queue and f.bucket = forget_failure.bucket
    returning f.* into _failure;
    if _failure.page is not null then
        perform pgcombine_internal.schedule_expiry(_failure.queue, _failure.bucket, _failure.page,
            _failure.page + 1024, '0 s', _failure.sqlstate, _failure.error);
    end if;
end
$$;
