-- pgcombine_internal.forget_failure(queue, plan)
-- Forgets that passes over a bucket failed, after a pass that took all updates. After another pass it doubles the
-- bucket's limit, which fail_pass has halved.
-- Passes after a failure remove no expired keys. So if the first failed pass removed some, the function takes their
-- pages for the cause of the failure. The scan then continues after these pages.
--   queue  the queue's row
-- Tables written: pgcombine.failure, expiry.
create or replace function pgcombine_internal.forget_failure(queue pgcombine.queue, plan pgcombine.plan)
returns void
language plpgsql
as $$
declare
    _failure pgcombine.failure;
begin
    if ($2).more then
        update pgcombine.failure f
        set pass_limit = nullif(least(2 * greatest(f.pass_limit, 1), ($1).pass_limit), ($1).pass_limit)
        where f.queue = ($2).queue and f.bucket = ($2).bucket and f.pass_limit is not null;
        return;
    end if;
    delete from pgcombine.failure f where f.queue = ($2).queue and f.bucket = ($2).bucket
    returning f.* into _failure;
    if _failure.page is not null then
        perform pgcombine_internal.schedule_expiry(_failure.queue, _failure.bucket, _failure.page,
            _failure.page + 1024, '0 s', _failure.sqlstate, _failure.error);
    end if;
end
$$;
