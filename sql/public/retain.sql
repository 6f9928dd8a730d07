-- call pgcombine.retain(queue)
-- Removes the keys that have expired, and returns their number as the parameter removed. Workers do it by themselves; this
-- is for cron, and for programs without workers.
-- It is a procedure, called outside of a transaction: it commits after each step. A step claims a bucket, reads 8 MB of
-- its values and removes 10000 keys at most. A bucket that stays claimed for five seconds is left for the next call, and
-- so is one with more pending updates than pass_limit. A paused queue is left alone.
-- Tables written: <queue>_values; retention; failure; those of the observers.
-- Errors: PC001 unknown queue; PC003 (or 2D000) called in a transaction; PC008 the queue has functions in Python; 40001
-- observers were added or dropped during a step; 42501 the caller may not run passes over the queue; those of observers.
create or replace procedure pgcombine.retain(queue text, inout removed bigint default null)
language plpgsql
as $$
declare
    _bucket integer;
    _plan pgcombine.plan;
    _observed jsonb;
    _page bigint;
    _tries integer;
    _keys bigint;
begin
    begin -- see wait
        commit;
    exception when invalid_transaction_termination then
        perform pgcombine_internal.require(sqlerrm <> 'invalid transaction termination', 'PC003', 'retain can''t run in a transaction', 'commit, then call it alone');
    end;
    commit;
    set local transaction isolation level read committed;
    perform pgcombine_internal.require_queue(retain.queue);
    perform pgcombine_internal.require_right(retain.queue, 'work');
    removed := 0;
    foreach _bucket in array array(select b.bucket from pgcombine.bucket b where b.queue = retain.queue order by b.bucket) loop
        _page := 0;
        _tries := 0;
        -- in between the queue may be paused, dropped or rebucketed
        while _page is not null and exists (select from pgcombine.bucket b join pgcombine.queue q using (queue)
                                            where b.queue = retain.queue and b.bucket = _bucket and not q.paused) loop
            _observed := pgcombine_internal.observed(retain.queue);
            if pgcombine_internal.claim_bucket(retain.queue, _bucket) is null then
                _tries := _tries + 1;
            else
                _tries := 0;
                select p.* into _plan from pgcombine_internal.plan_retain(retain.queue, _bucket, _page) p;
                _page := null;
                if _plan.queue is not null then
                    select r.removed, r.next_page into _keys, _page from pgcombine_internal.run_retain(_plan) r;
                    removed := removed + _keys;
                    if pgcombine_internal.observed(retain.queue) is distinct from _observed then
                        raise serialization_failure using message = format('observers of queue "%s" were added or dropped during the step', retain.queue),
                            hint = 'call it again';
                    end if;
                end if;
            end if;
            commit;
            set local transaction isolation level read committed;
            exit when _tries = 100;
            perform pg_sleep(0.05) where _tries > 0;
        end loop;
    end loop;
end
$$;
