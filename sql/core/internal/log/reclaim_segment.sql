-- pgcombine_internal.reclaim_segment(queue, relation, partition, last, seen, horizon) → boolean
-- Truncates a segment that consumed_segments has listed; returns whether it did. The function truncates the segment
-- only if it gets the segment's lock at once, and if nothing in the locked segment is needed.
-- Tables written: the segment.
-- Errors: PC001 unknown queue; 42501 the caller lacks the right to truncate the segment.
create or replace function pgcombine_internal.reclaim_segment(queue text, relation text, partition integer, last bigint,
    seen txid_snapshot, horizon bigint)
returns boolean
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(reclaim_segment.queue);
begin
    if last is null and pgcombine_internal.needed(_queue.queue, relation, partition, seen, horizon, false) then
        return false; -- avoids a useless lock
    end if;
    perform set_config('lock_timeout', '20ms', true); -- for truncate's locks of the TOAST table and its index
    execute format('lock table only %s in access exclusive mode nowait', relation);
    if last is null then
        if pgcombine_internal.needed(_queue.queue, relation, partition, seen, horizon, true) then
            raise sqlstate 'PC099'; -- the exception clause rolls back, which ends the lock
        end if;
    elsif not exists (select from pgcombine_internal.consumed_segments(_queue.queue, seen, horizon) c
        where (c.relation, c.last) = (reclaim_segment.relation, reclaim_segment.last)) then
        raise sqlstate 'PC099'; -- meanwhile the segment was truncated or exchanged, or a later round has begun in it
    end if;
    execute format('truncate %s', relation);
    return true;
exception when lock_not_available or undefined_table or sqlstate 'PC099' then
    return false;
end
$$;
