-- pgcombine_internal.copy_updates(queue, until)
-- Second step of rebucket: copies the pending updates to <queue>_updates_new, as many as possible before it locks both
-- tables of the queue, and the rest afterwards.
--   until  when to stop trying for the lock
-- Tables written: <queue>_updates_new, restoring.
-- Errors: PC006 the lock wasn't granted in time.
create or replace function pgcombine_internal.copy_updates(queue text, until timestamptz)
returns void
language plpgsql
as $$
declare
    _target constant text := format('pgcombine.%I', copy_updates.queue || '_updates_new');
    _timeout constant text := current_setting('lock_timeout');
    _seen txid_snapshot;
    _mark txid_snapshot;
    _moved bigint;
    _round integer := 0;
    _next timestamptz := '-infinity';
    _wait integer := 100; -- ms
begin
    insert into pgcombine.restoring default values;
    loop
        if clock_timestamp() >= _next then -- copy as much as possible before the lock
            _mark := pgcombine_internal.current_mark();
            _moved := pgcombine_internal.move_updates(copy_updates.queue, _target, _seen, _mark);
            _seen := _mark;
            _round := _round + 1;
            continue when _moved >= 10000 and _round < 5;
            _next := clock_timestamp() + interval '10 s';
        end if;
        -- A session that waits for such a lock holds up all later ones. So it is requested briefly, again and again. The time
        -- grows, since the backlog grows meanwhile and readers take longer. Autovacuum gives way after deadlock_timeout.
        begin
            perform set_config('lock_timeout', _wait || 'ms', true);
            -- locks the view and the tables it reads, in the order of its readers
            execute format('lock table pgcombine.%I in access exclusive mode', copy_updates.queue || '_current');
            perform set_config('lock_timeout', _timeout, true);
            exit;
        exception when lock_not_available or deadlock_detected then null;
        end;
        perform pgcombine_internal.require(clock_timestamp() <= until, 'PC006', format('the tables of queue "%s" were in use all the time', copy_updates.queue),
            'nothing was changed; look for long transactions in pg_stat_activity, or give more time');
        perform pg_sleep(_wait / 1000.0 * (0.5 + random()));
        _wait := least(_wait * 2, 10000);
    end loop;
    perform pgcombine_internal.move_updates(copy_updates.queue, _target, _seen, null);
    delete from pgcombine.restoring r where r.tx = txid_current();
end
$$;
