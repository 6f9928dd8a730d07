-- pgcombine_internal.close_queue(queue, force, wholly)
-- Removes a queue from the catalog and drops its objects, except <queue>_updates and <queue>_values. The function locks
-- these two tables, and the caller drops them.
--   force   see drop_queue
--   wholly  whether to lock the tables' partitions, too
-- Components register queries for two events (see the table hook). A query for the event close returns rows: a problem
-- that keeps the queue (null: none), a hint, and the statement that removes what the component has. A query for the
-- event closed runs once the queue is out of the catalog.
-- Tables written: pgcombine.queue and the tables that refer to it; contribution, token, combiner; those of components.
-- Errors: PC001 unknown queue; PC003 session_replication_role turns foreign keys off, or the isolation level isn't read
-- committed, without force; PC005 updates are pending or quarantined, or a component keeps the queue, without force;
-- PC006 the tables weren't free within lock_timeout; 2BP01 another object depends on one that the function drops; 42501
-- the caller doesn't own the queue.
create or replace function pgcombine_internal.close_queue(queue text, force boolean, wholly boolean)
returns void
language plpgsql
as $$
declare
    _queue constant text := (pgcombine_internal.require_queue(queue)).queue;
    _pending bigint;
    _query text;
    _combiner text;
    _problem text;
    _hint text;
    _removal text;
begin
    perform pgcombine_internal.require_owner();
    -- the rows of other tables go by the triggers of foreign keys
    perform pgcombine_internal.require(current_setting('session_replication_role') in ('origin', 'local'), 'PC003',
        format('drop of queue "%s" needs foreign keys, which session_replication_role turns off', _queue),
        'set session_replication_role = origin');

    -- An older snapshot doesn't see updates that were committed since. The check below would miss them.
    if force is not true and current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'drop of queue "%" needs isolation level read committed', _queue using errcode = 'PC003',
            hint = 'other levels don''t see all pending updates; or pass force => true to lose them';
    end if;

    -- Claim the buckets before locking tables, as a pass does. A pass in progress then ends first and can't deadlock
    -- with this function.
    perform pgcombine_internal.claim_buckets(_queue);
    perform from pgcombine.queue q where q.queue = _queue for update; -- from now on no new row refers to the queue

    execute ( -- first, since two of them return rows of a view that a component may drop
        select coalesce(string_agg(format('drop function %s', p.oid::regprocedure), '; '), '')
        from pg_proc p join unnest(array['_enqueue', '_get', '_get_many']) s on p.proname = _queue || s
        where p.pronamespace = 'pgcombine'::regnamespace);
    -- The components' queries run before the locks below, since a component may wait for the users of what it removes.
    for _query in select h.query from pgcombine.hook h where h.event = 'close' loop
        for _problem, _hint, _removal in execute _query using _queue loop
            if force is not true and _problem is not null then
                raise exception using errcode = 'PC005', message = _problem, hint = _hint;
            end if;
            execute _removal;
        end loop;
    end loop;

    perform pgcombine_internal.await_tables(_queue, wholly);

    -- From here on no session enqueues or combines, so the count below stays right.
    _pending := pgcombine.backlog(_queue);
    if force is not true and _pending > 0 then
        raise exception 'queue "%" has % pending updates', _queue, _pending
            using errcode = 'PC005', hint = 'drain it first, or pass force => true to lose them';
    end if;
    execute format('select count(*) from pgcombine.%I', _queue || '_quarantine') into _pending;
    if force is not true and _pending > 0 then
        raise exception 'queue "%" has % updates of quarantined keys', _queue, _pending
            using errcode = 'PC005', hint = 'retry or drop them first, or pass force => true to lose them';
    end if;

    execute format('drop view pgcombine.%I, pgcombine.%I', _queue || '_current', _queue || '_pending');
    execute format('drop table pgcombine.%I, pgcombine.%I', _queue || '_quarantine', _queue || '_quarantine_keys')
        || (select case when q.contribution is not null then format(', pgcombine.%I', _queue || '_contributions')
                else '' end from pgcombine.queue q where q.queue = _queue);
    delete from pgcombine.queue q where q.queue = _queue;
    delete from pgcombine.contribution c where c.queue = _queue;
    delete from pgcombine.token t where t.queue = _queue;
    for _query in select h.query from pgcombine.hook h where h.event = 'closed' loop
        execute _query using _queue;
    end loop;
    -- Drop user-defined combiners that no queue uses now, with the routines that fold with them. A transaction
    -- that creates a queue with a combiner has locked the combiner's row, so "skip locked" leaves that row out.
    for _combiner in
        select k.combiner from pgcombine.combiner k where k.function is not null for update skip locked
    loop
        continue when exists (select from pgcombine.queue_column c where c.combiner = _combiner);
        execute ( -- the aggregate first, since it depends on the strict function
            select coalesce(string_agg(format('drop routine %s', p.oid::regprocedure), '; ' order by p.prokind), '')
            from pg_proc p
            where p.pronamespace = 'pgcombine_internal'::regnamespace and p.proname like E'fold\\_%'
                and p.proname like E'%\\_' || left(md5(_combiner), 8));
        delete from pgcombine.combiner k where k.combiner = _combiner;
    end loop;
end
$$;
