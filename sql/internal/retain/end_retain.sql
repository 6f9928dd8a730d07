-- pgcombine_internal.end_retain(plan, keys) → next page
-- Notes how far the search for expired keys has got in a bucket. Returns the page where the next step begins; null: the
-- search has reached the end, and the next one begins at the first page after retain_every.
--   keys  number of keys that the step has removed. If it could have removed more, the next step takes the same pages
-- It writes no journal row: the journal says which updates are combined, and this step combines none.
-- Tables written: retention; failure, if the bucket's last pass failed and no updates are pending.
create or replace function pgcombine_internal.end_retain(plan pgcombine.plan, keys bigint)
returns bigint
language plpgsql
as $$
declare
    _plan constant pgcombine.plan := end_retain.plan;
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(_plan.queue);
    _next bigint := _plan.first_page + case when end_retain.keys < _plan.most then _plan.pages else 0 end;
begin
    if _next * current_setting('block_size')::bigint
       >= pg_relation_size(((pgcombine_internal.partition_tables(_plan.queue, _plan.bucket % _queue.partitions))[2])::regclass) then
        _next := null;
    end if;
    perform pgcombine_internal.put_off_retain(_plan.queue, _plan.bucket, coalesce(_next, 0),
        case when _next is null then _queue.retain_every else interval '0' end);
    if _plan.pending = 0 then
        perform pgcombine_internal.forget_failure(_plan.queue, _plan.bucket);
    end if;
    return _next;
end
$$;
