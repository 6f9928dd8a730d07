-- pgcombine_internal.close_queue(queue, force, wholly)
-- Removes a queue from the catalog, with all its objects except its two tables, which are locked and can then be
-- dropped. Raises if updates are pending or held, or the queue is attached or exported, unless forced.
--   force   see drop_queue
--   wholly  whether their partitions are locked, too
-- Tables written: pgcombine.queue and the tables that refer to it; combiner, attachment; those of drop_export and of
-- handoff_drop_queue.
-- Errors: PC001 unknown queue; PC003 the isolation level isn't read committed, without force; PC005 updates are pending
-- or held, a table is attached, or the queue is exported, without force; PC006 the tables weren't free within
-- lock_timeout; 2BP01 another object depends on its views.
create or replace function pgcombine_internal.close_queue(queue text, force boolean, wholly boolean)
returns void
language plpgsql
as $$
declare
    _queue constant text := (pgcombine_internal.require_queue(close_queue.queue)).queue;
    _pending bigint;
    _attachment integer;
    _source regclass;
    _export text;
    _attempt integer := 0;
    _until constant timestamptz := (
        select case when s.setting = '0' then 'infinity' else clock_timestamp() + s.setting::bigint * interval '1 ms' end
        from pg_settings s where s.name = 'lock_timeout');
begin
    -- updates that were committed after an older snapshot would be lost without being counted
    perform pgcombine_internal.require(force or current_setting('transaction_isolation') = 'read committed', 'PC003',
        format('drop of queue "%s" needs isolation level read committed', _queue),
        'other levels don''t see all pending updates; or pass force => true to lose them');
    -- Claim the buckets before locking tables, as a pass does: a pass under way then ends and can't deadlock with this.
    perform pgcombine_internal.claim_buckets(_queue);
    for _export in select e.export from pgcombine.export e where e.queue = _queue order by e.export loop
        perform pgcombine_internal.require(force, 'PC005', format('queue "%s" is exported by "%s"', _queue, _export),
            format('deliver its entries and drop it first (pgcombine export run %s --drain; '
                'pgcombine export drop %s), or pass force => true to drop it with its entries', _export, _export));
        perform pgcombine.drop_export(_export, force => true); -- before the locks below, since drop_export waits for deliveries
    end loop;
    while not pgcombine_internal.lock_tables(_queue, _attempt, close_queue.wholly) loop
        _attempt := _attempt + 1;
        perform pgcombine_internal.require(clock_timestamp() <= _until, 'PC006', format('the tables of queue "%s" were in use all the time', _queue),
            'nothing was changed; look for long transactions in pg_stat_activity, or set lock_timeout to a longer time');
    end loop;
    -- From here on no session enqueues or combines, so the count below holds.
    _pending := pgcombine.backlog(_queue);
    perform pgcombine_internal.require(force or _pending = 0, 'PC005', format('queue "%s" has %s pending updates', _queue, _pending),
        'drain it first, or pass force => true to lose them');
    execute format('select count(*) from pgcombine.%I', _queue || '_quarantine') into _pending;
    perform pgcombine_internal.require(force or _pending = 0, 'PC005', format('queue "%s" has %s updates of quarantined keys', _queue, _pending),
        'retry or drop them first, or pass force => true to lose them');
    for _attachment, _source in select a.id, a.source from pgcombine.attachment a where a.queue = _queue order by a.id loop
        perform pgcombine_internal.require(force or not exists (select from pg_class c where c.oid = _source), 'PC005',
            format('queue "%s" is attached to %s: without the queue, changes of that table would fail', _queue, _source), 'detach it first, or pass force => true');
        begin
            perform pgcombine.detach(_queue, _source);
        exception when insufficient_privilege then -- the table is another role's: cascade drops its triggers
            execute format('drop function pgcombine_internal.%I() cascade', pgcombine_internal.attached_function(_attachment));
            delete from pgcombine.attachment a where a.id = _attachment;
        end;
    end loop;

    execute format('drop view pgcombine.%I, pgcombine.%I', _queue || '_current', _queue || '_pending');
    execute ( -- a queue may lack this function (see enqueue_function)
        select coalesce(string_agg(format('drop function %s', p.oid::regprocedure), '; '), '')
        from pg_proc p where p.pronamespace = 'pgcombine'::regnamespace and p.proname = _queue || '_enqueue');
    execute format('drop table pgcombine.%I, pgcombine.%I', _queue || '_quarantine', _queue || '_quarantine_keys');
    delete from pgcombine.queue q where q.queue = _queue;
    perform pgcombine_internal.handoff_drop_queue(_queue);
    perform pgcombine_internal.drop_unused_combiners();
end
$$;
