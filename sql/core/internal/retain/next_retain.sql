-- pgcombine_internal.next_retain(plan, page, pause) → page
-- Notes that the search for expired keys of a bucket goes on with a page after a pause. Behind the last page the next
-- search begins after retain_every, and the result is null.
-- Tables written: retention.
create or replace function pgcombine_internal.next_retain(plan pgcombine.plan, page bigint, pause interval)
returns bigint
language plpgsql
as $$
declare
    _plan constant pgcombine.plan := next_retain.plan;
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(_plan.queue);
    _values constant regclass := (pgcombine_internal.partition_tables(_plan.queue, _plan.bucket % _queue.partitions))[2];
    _ends constant boolean := next_retain.page * current_setting('block_size')::bigint >= pg_relation_size(_values);
begin
    perform pgcombine_internal.put_off_retain(_plan.queue, _plan.bucket, case when _ends then 0 else next_retain.page end,
        case when _ends then _queue.retain_every else next_retain.pause end);
    return case when not _ends then next_retain.page end;
end
$$;
