-- call pgcombine.wait(queue [, timeout])
-- Returns when all updates that were committed before the call are combined; what is enqueued meanwhile is not
-- waited for. Workers must run. Updates in quarantine are not waited for: they are not pending.
--   timeout  null: no limit (statement_timeout holds for the call, too)
-- A procedure, and not in a transaction: it commits between looks, so that it is no old snapshot itself.
-- It is done once no update is pending that the snapshot of its first look sees.
-- Errors: PC001 unknown queue; PC003 (or 2D000) called in a transaction; PC006 still pending when the time is up.
create or replace procedure pgcombine.wait(queue text, timeout interval default null)
language plpgsql
as $$
declare
    _until constant timestamptz := clock_timestamp() + wait.timeout;
    _pause double precision := 0.002;
    _seen txid_snapshot; -- what is waited for
    _buckets integer[];
begin
    -- in a block like this one a commit fails in any case, but in a transaction for another reason; where messages
    -- are translated, the first commit below raises 2D000 all the same
    begin
        commit;
    exception when invalid_transaction_termination then
        perform pgcombine.require(sqlerrm <> 'invalid transaction termination', 'PC003',
            format('wait for queue "%s" can''t run in a transaction', wait.queue),
            'what the transaction enqueued is combined only after its commit; commit, then call it alone');
    end;
    commit;
    -- Each look is one of its own. Under serializable, looks would conflict with enqueues and passes.
    set local transaction isolation level read committed;
    perform pgcombine.require_queue(wait.queue);
    _seen := txid_current_snapshot();
    loop
        -- the number of buckets may change; a bucket without pending updates of that time has none later
        _buckets := array(select b.bucket from pgcombine.bucket b where b.queue = wait.queue order by b.bucket);
        exit when not exists (select from unnest(_buckets) b where pgcombine.pending(wait.queue, b, _seen));
        perform pgcombine.require(coalesce(clock_timestamp() < _until, true), 'PC006',
            format('queue "%s" still has updates from before the call after %s', wait.queue, wait.timeout),
            case when (pgcombine.require_queue(wait.queue)).paused then 'the queue is paused: resume it' else 'do workers run?' end);
        commit;
        perform pg_sleep(least(_pause, extract(epoch from _until - clock_timestamp())));
        commit;
        set local transaction isolation level read committed;
        _pause := least(2 * _pause, 0.1);
    end loop;
end
$$;
