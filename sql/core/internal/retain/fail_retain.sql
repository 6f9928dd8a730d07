-- pgcombine_internal.fail_retain(plan, sqlstate, error [, pause]) → next page
-- Records that a step of the search for expired keys failed and was rolled back. The search goes on behind the step's
-- pages after a pause, so that a key at fault keeps no others. The next search takes these pages again. It isn't a
-- failure of the bucket's passes, and no key is quarantined. Returns the page where the next step begins; null: the
-- search has reached the end. It is also null, and nothing is recorded, if the search began anew since the step began, or
-- another step was taken: then this one says nothing of what comes next.
-- Tables written: retention.
create or replace function pgcombine_internal.fail_retain(plan pgcombine.plan, sqlstate text, error text, pause interval default '10 s')
returns bigint
language plpgsql
as $$
declare
    _plan constant pgcombine.plan := fail_retain.plan;
begin
    insert into pgcombine.retention as r (queue, bucket, page, due, sqlstate, error, failed_at, failed_page)
    values (_plan.queue, _plan.bucket, _plan.first_page, _plan.began, fail_retain.sqlstate, fail_retain.error, clock_timestamp(), _plan.first_page)
    on conflict on constraint retention_pkey do update
    set (sqlstate, error, failed_at, failed_page) = (excluded.sqlstate, excluded.error, excluded.failed_at, excluded.failed_page)
    where r.due <= _plan.began;
    if not found then
        return null;
    end if;
    return pgcombine_internal.next_retain(_plan, _plan.first_page + _plan.pages, fail_retain.pause);
end
$$;
