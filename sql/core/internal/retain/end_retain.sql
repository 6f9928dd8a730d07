-- pgcombine_internal.end_retain(plan, keys) → next page
-- Notes how far the search for expired keys has got in a bucket. Returns the page where the next step begins; null: the
-- search has reached the end, and the next one begins at the first page after retain_every.
--   keys  number of keys that the step has removed. If it could have removed more, the next step takes the same pages
-- It writes no journal row: the journal says which updates are combined, and this step combines none.
-- A failure of a step is forgotten when its pages have been looked through, or are gone.
-- Tables written: retention.
create or replace function pgcombine_internal.end_retain(plan pgcombine.plan, keys bigint)
returns bigint
language plpgsql
as $$
declare
    _plan constant pgcombine.plan := end_retain.plan;
    _page constant bigint := _plan.first_page + case when end_retain.keys < _plan.most then _plan.pages else 0 end;
    _next constant bigint := pgcombine_internal.next_retain(_plan, _page, '0 s');
begin
    update pgcombine.retention r
    set (sqlstate, error, failed_at, failed_page) = (null, null, null, null)
    where (r.queue, r.bucket) = (_plan.queue, _plan.bucket) and r.failed_page >= _plan.first_page and (r.failed_page < _page or _next is null);
    return _next;
end
$$;
