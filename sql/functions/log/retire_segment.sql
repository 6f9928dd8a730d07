-- pgcombine.retire_segment(queue, relation, partition, last, seen, horizon) → boolean
-- Truncates a table that consumed_segments has found, if its lock is to be had at once and a look under the lock finds that
-- nothing in it is needed. Nobody waits: neither this for a writer, nor writers for long.
-- Tables written: that one.
-- Errors: 42501 the caller may not truncate it.
create or replace function pgcombine.retire_segment(queue text, relation text, partition integer, last bigint,
    seen txid_snapshot, horizon bigint)
returns boolean
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(retire_segment.queue);
begin
    if last is null and pgcombine.needed(_queue.queue, relation, partition, seen, horizon, false) then
        return false; -- a look at the end of the table spares most locks
    end if;
    perform set_config('lock_timeout', '20ms', true); -- for what the table has beside it
    execute format('lock table only %s in access exclusive mode nowait', relation);
    if last is null then
        if pgcombine.needed(_queue.queue, relation, partition, seen, horizon, true) then
            raise sqlstate 'PC099'; -- ends the lock
        end if;
    elsif not exists (select from pgcombine.consumed_segments(_queue.queue, seen, horizon) c where (c.relation, c.last) = (retire_segment.relation, retire_segment.last)) then
        raise sqlstate 'PC099'; -- a later round has begun in it, or a rebucket has exchanged it
    end if;
    execute format('truncate %s', relation);
    return true;
exception when lock_not_available or undefined_table or sqlstate 'PC099' then
    return false;
end
$$;
