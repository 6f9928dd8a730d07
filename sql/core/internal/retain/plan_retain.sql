-- pgcombine_internal.plan_retain(queue, bucket [, observers]) → plan
-- Plans a step of the search for expired keys over a bucket that the caller has claimed: a pass that removes the expired
-- keys of some pages of the bucket's values, and combines no updates. No row if there is nothing to do now: the queue has
-- no condition, another worker has just looked through the bucket, or more updates are pending than one pass takes.
--   observers  as for plan_pass
-- Of the plan:
--   first_page, pages  the pages
--   most  number of keys that the step removes at most
-- A step leaves keys with pending updates to the pass that combines these, since their new values may be retained. So it
-- reads the bucket's pending updates, and it waits while they are more than pass_limit.
-- Errors: those of plan_pass.
create or replace function pgcombine_internal.plan_retain(queue text, bucket integer, observers text[] default '{}')
returns setof pgcombine.plan
language plpgsql
as $$
declare
    _place pgcombine.retention;
    _plan pgcombine.plan;
begin
    select r.* into _place from pgcombine.retention r where (r.queue, r.bucket) = (plan_retain.queue, plan_retain.bucket);
    if (pgcombine_internal.require_queue(plan_retain.queue)).retain is null or _place.due > clock_timestamp() then
        return;
    end if;
    _plan := pgcombine_internal.plan_pass(plan_retain.queue, plan_retain.bucket, observers => plan_retain.observers);
    if _plan.more then
        perform pgcombine_internal.put_off_retain(plan_retain.queue, plan_retain.bucket);
        return;
    end if;
    _plan.first_page := coalesce(_place.page, 0);
    _plan.pages := 1024;
    _plan.most := 10000;
    return next _plan;
end
$$;
