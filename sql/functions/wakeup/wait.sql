-- call pgcombine.wait(queue [, timeout])
-- Returns when all updates that were committed before the call are combined; what is enqueued meanwhile is not
-- waited for. Workers must run. Updates in quarantine are not waited for: they are not pending.
--   timeout  null: no limit (statement_timeout holds for the call, too)
-- A procedure, and not in a transaction: it commits between looks, so that it is no old snapshot itself.
-- A bucket is done once it holds no row from before the mark, the snapshot of the first look. Folds and rebucket
-- write pending updates anew, as rows from after the mark; they count this in bucket.moves, and a waiter that
-- sees the count change takes a new mark and waits for all that is committed by then.
-- Errors: PC001 unknown queue; PC003 (or 2D000) called in a transaction; PC006 still pending when the time is up.
create or replace procedure pgcombine.wait(queue text, timeout interval default null)
language plpgsql
as $$
declare
    _queue pgcombine.queue;
    _until constant timestamptz := clock_timestamp() + wait.timeout;
    _pause double precision := 0.002;
    _mark xid8;
    _buckets integer[];
    _moves bigint[];
    _pending boolean;
begin
    -- in a block like this one a commit fails in any case, but in a transaction for another reason; where messages
    -- are translated, the first commit below raises 2D000 all the same
    begin
        commit;
    exception when invalid_transaction_termination then
        if sqlerrm = 'invalid transaction termination' then
            raise exception 'wait for queue "%" can''t run in a transaction', wait.queue
                using errcode = 'PC003', hint = 'what the transaction enqueued is combined only after its commit; commit, then call it alone';
        end if;
    end;
    commit;
    -- Each look is one of its own. Under serializable, looks would conflict with enqueues and passes.
    set local transaction isolation level read committed;
    _queue := pgcombine.require_queue(wait.queue);
    loop
        if _mark is null then
            select pg_snapshot_xmax(pg_current_snapshot()), array_agg(b.bucket order by b.bucket), array_agg(b.moves order by b.bucket)
            into _mark, _buckets, _moves
            from pgcombine.bucket b where b.queue = wait.queue;
            _queue := pgcombine.require_queue(wait.queue); -- not dropped meanwhile
        end if;
        while cardinality(_buckets) > 0 loop
            _pending := pgcombine.pending_since(wait.queue, _buckets[1], _moves[1], _mark);
            exit when _pending is distinct from false;
            _buckets := _buckets[2:];
            _moves := _moves[2:];
            _pause := 0.002;
        end loop;
        exit when cardinality(_buckets) = 0;
        if _pending is null then
            _mark := null;
        end if;
        if clock_timestamp() >= _until then
            raise exception 'queue "%" still has updates from before the call after %', wait.queue, wait.timeout
                using errcode = 'PC006', hint = case
                    when (pgcombine.require_queue(wait.queue)).paused then 'the queue is paused: resume it'
                    else 'do workers run?' end;
        end if;
        commit;
        perform pg_sleep(least(_pause, extract(epoch from _until - clock_timestamp())));
        commit;
        set local transaction isolation level read committed;
        _pause := least(2 * _pause, 0.1);
    end loop;
end
$$;
