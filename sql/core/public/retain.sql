-- call pgcombine.retain(queue)
-- Removes the keys that have expired, and returns their number as the parameter removed. Workers do it by themselves; this
-- is for cron, and for programs without workers.
-- It is a procedure, called outside of a transaction: it commits after each step. A step claims a bucket, reads 8 MB of
-- its values and removes 10000 keys at most. A bucket that stays claimed for five seconds is left for the next call, and
-- so is one with more pending updates than pass_limit. A paused queue is left alone. If a step fails, the keys of its
-- pages stay, and the error is raised after all other steps.
-- Tables written: <queue>_values; retention; those of the observers.
-- Errors: PC001 unknown queue; PC003 (or 2D000) called in a transaction; PC008 the queue has observers in Python; 40001
-- observers or the condition changed during a step; 42501 the caller may not run passes over the queue; those of
-- observers and of the condition.
create or replace procedure pgcombine.retain(queue text, inout removed bigint default null)
language plpgsql
as $$
declare
    _queue pgcombine.queue;
    _now pgcombine.queue;
    _bucket integer;
    _begins boolean;
    _plan pgcombine.plan;
    _observed jsonb;
    _page bigint;
    _tries integer;
    _keys bigint;
    _sqlstate text;
    _error text;
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
    loop
        -- in between the queue may be paused, dropped or rebucketed
        select q.* into _now from pgcombine.queue q where q.queue = retain.queue and not q.paused;
        if (_now.buckets, _now.partitions) is distinct from (_queue.buckets, _queue.partitions) then
            _bucket := 0;
            _begins := true;
            _tries := 0;
        end if;
        _queue := _now;
        exit when (_bucket < _queue.buckets) is not true;
        if _begins then -- in a transaction of its own, since the row is locked until its end: set_retain doesn't wait for a step
            perform pgcombine_internal.put_off_retain(retain.queue, _bucket, 0, '0 s');
            _begins := false;
            commit;
            set local transaction isolation level read committed;
            continue;
        end if;
        _observed := pgcombine_internal.observed(retain.queue);
        _page := 0;
        if pgcombine_internal.claim_bucket(retain.queue, _bucket) is null then
            _tries := _tries + 1;
            _page := case when _tries < 100 then 0 end;
        else
            _tries := 0;
            select p.* into _plan from pgcombine_internal.plan_retain(retain.queue, _bucket) p;
            if _plan.queue is null then
                _page := null;
            else
                begin
                    select r.removed, r.next_page into _keys, _page from pgcombine_internal.run_retain(_plan) r;
                    set constraints all immediate; -- what would fail at the commit fails here
                    removed := removed + _keys;
                exception
                    when serialization_failure or deadlock_detected or lock_not_available then
                        raise;
                    when others then
                        _page := pgcombine_internal.fail_retain(_plan, sqlstate, sqlerrm, '0 s');
                        _sqlstate := coalesce(_sqlstate, sqlstate);
                        _error := coalesce(_error, sqlerrm);
                end;
                select q.* into _now from pgcombine.queue q where q.queue = retain.queue;
                if pgcombine_internal.observed(retain.queue) is distinct from _observed
                   or (_now.retain, _now.retain_silently, _now.retain_every) is distinct from (_queue.retain, _queue.retain_silently, _queue.retain_every) then
                    raise serialization_failure using message = format('observers or the condition of queue "%s" changed during the step', retain.queue),
                        hint = 'call it again';
                end if;
            end if;
        end if;
        commit;
        set local transaction isolation level read committed;
        if _page is null then
            _bucket := _bucket + 1;
            _begins := true;
            _tries := 0;
        end if;
        perform pg_sleep(0.05) where _tries > 0;
    end loop;
    if _error is not null then
        raise exception using errcode = _sqlstate, message = _error,
            hint = 'pgcombine.retention has the pages around the keys at fault; the search went on behind them';
    end if;
end
$$;
