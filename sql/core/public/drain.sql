-- call pgcombine.drain(queue)
-- Combines a queue's updates until none are pending, and returns their number as the parameter updates. Use it in cron,
-- and in programs without workers. Call the procedure outside of a transaction: it commits after each pass. Other
-- sessions may run passes at the same time.
-- If a pass over a bucket fails, the call records the failure and leaves the bucket for the next call. After a conflict
-- with another session (40001, 40P01, 55P03) it runs the pass again instead. A cancellation ends the call. After
-- quarantine_after failures it quarantines the failing keys (see fail_pass, bisect) and runs the pass again. If other
-- sessions keep all remaining buckets claimed for five seconds, the call leaves these buckets, too.
-- At the end it trims the journal and reclaims the log. If it has left a failing bucket, it then raises the last error.
-- Tables written: those of run_pass, fail_pass, bisect, reclaim and trim_journal.
-- Errors: PC001 unknown queue; PC003 (or 2D000) called in a transaction; PC006 the queue is paused and has pending
-- updates; PC008 the queue has observers in Python; PC012 the database is a copy in which post_restore has not run yet;
-- 42501 the caller lacks the right work; those of observers and combiners.
create or replace procedure pgcombine.drain(queue text, inout updates bigint default null)
language plpgsql
as $$
declare
    _left integer[] := '{}'; -- buckets that failed
    _bucket integer;
    _claimed integer := 0; -- rounds in a row in which no pass took updates
    _done record;
    _failure record;
    _sqlstate text; -- of the last failure
    _error text;
    _failed boolean;
begin
    call pgcombine_internal.begin_alone('drain');
    perform pgcombine_internal.require_queue(drain.queue);
    perform pgcombine_internal.require_right(drain.queue, 'work');
    perform pgcombine_internal.refuse_copied();
    updates := 0;
    perform pgcombine_internal.before_drain(drain.queue);
    commit; -- passes take only what is committed
    set local transaction isolation level read committed;
    while _claimed < 100 loop
        _claimed := _claimed + 1;
        -- after a pass without updates the bucket has no old failure (see forget_failure)
        foreach _bucket in array array(
            select b.bucket from pgcombine_internal.busy(drain.queue) b where b.bucket <> all (_left)
            union
            select b.bucket from pgcombine.bucket b join pgcombine.failure f using (queue, bucket)
            where b.queue = drain.queue and b.bucket <> all (_left))
        loop
            _failed := false;
            begin
                select p.* into _done from pgcombine_internal.run_pass(drain.queue, _bucket) p;
                set constraints all immediate; -- deferred constraints fail here, not at the commit
                if _done.updates > 0 then
                    updates := updates + _done.updates;
                    _claimed := 0;
                end if;
            exception when assert_failure or others then
                -- an observer may raise 42501, too, which is a failure of the pass
                if sqlstate in ('PC008', 'PC012') or not pgcombine_internal.has_right(null, 'work') then
                    raise;
                end if;
                _failed := sqlstate not in ('40001', '40P01', '55P03') -- caused by other sessions
                    and exists (select from pgcombine.bucket b where b.queue = drain.queue and b.bucket = _bucket);
                if _failed then
                    _sqlstate := sqlstate;
                    _error := sqlerrm;
                end if;
            end;
            commit;
            set local transaction isolation level read committed;
            continue when not _failed;
            select f.* into _failure from pgcombine_internal.fail_pass(drain.queue, _bucket, _sqlstate, _error) f;
            commit;
            set local transaction isolation level read committed;
            if _failure.bisect then
                begin
                    if exists (select from pgcombine_internal.bisect(drain.queue, _bucket, _failure.attempts) i
                               where i.progress) then
                        _claimed := 0;
                        _failed := false;
                    end if;
                exception when assert_failure or others then
                    _sqlstate := sqlstate;
                    _error := sqlerrm;
                end;
                commit;
                set local transaction isolation level read committed;
            end if;
            if _failed then
                _left := _left || _bucket;
            end if;
        end loop;
        exit when not exists (
            select from pgcombine_internal.busy(drain.queue) b where b.bucket <> all (_left));
        perform pg_sleep(0.05) where _claimed > 0;
    end loop;
    perform pgcombine_internal.trim_journal(drain.queue);
    perform pgcombine_internal.check_backlog(drain.queue);
    commit;
    call pgcombine.reclaim(drain.queue);
    if cardinality(_left) > 0 then
        raise exception using errcode = _sqlstate, message = _error,
            hint = format('the view pgcombine.quarantine and the table pgcombine.failure say more of queue %L',
                drain.queue);
    end if;
    if exists (select from pgcombine.queue q join pgcombine.bucket b using (queue)
               where q.queue = drain.queue and q.paused and pgcombine_internal.pending(b.queue, b.bucket)) then
        raise exception 'queue "%" is paused and has pending updates', drain.queue
            using errcode = 'PC006', hint = format('select pgcombine.resume(%L) first', drain.queue);
    end if;
end
$$;
