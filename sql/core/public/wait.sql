-- call pgcombine.wait(queue [, timeout])
-- Waits until all updates that were committed before the call are combined. Later updates, and updates in
-- quarantine, don't count. Workers must run.
--   timeout  null: no limit, except statement_timeout
-- Call the procedure outside of a transaction: it commits between its checks, so that it holds no old snapshot. The
-- call ends when no update that its first snapshot sees is pending.
-- Errors: PC001 unknown queue; PC003 (or 2D000) called in a transaction; PC006 updates are still pending at the
-- timeout; PC012 the database is a copy in which post_restore has not run yet; 42501 the caller has no right on the
-- queue.
create or replace procedure pgcombine.wait(queue text, timeout interval default null)
language plpgsql
as $$
declare
    _until constant timestamptz := clock_timestamp() + timeout;
    _pause double precision := 0.002;
    _seen txid_snapshot; -- the call waits for the updates that this snapshot sees
    _buckets integer[];
    _pending boolean;
begin
    call pgcombine_internal.begin_alone('wait');
    perform pgcombine_internal.refuse_copied(); -- no snapshot of this database tells what the copied ids mean
    _seen := txid_current_snapshot();
    loop
        -- The number of buckets may change during the wait, so each round checks all of them.
        _buckets := array(select b.bucket from pgcombine.bucket b where b.queue = wait.queue order by b.bucket);
        perform pgcombine_internal.require_queue(queue); -- another session may drop the queue during the wait
        begin
            _pending := exists (select from unnest(_buckets) b
                where pgcombine_internal.pending(wait.queue, b, _seen));
        exception when undefined_table then
            perform pgcombine_internal.require_queue(queue); -- the queue was dropped since
            raise;
        end;
        exit when not _pending;
        if clock_timestamp() >= _until then
            raise exception 'after % queue "%" still has pending updates from before the call', timeout, queue
                using errcode = 'PC006', hint = case when (pgcombine_internal.require_queue(queue)).paused
                    then 'the queue is paused: resume it' else 'check that workers run' end;
        end if;
        commit;
        perform pg_sleep(least(_pause, extract(epoch from _until - clock_timestamp())));
        commit;
        set local transaction isolation level read committed;
        _pause := least(2 * _pause, 0.1);
    end loop;
end
$$;
