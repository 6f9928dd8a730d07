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
    _seen txid_snapshot;
    _mark txid_snapshot;
    _moved bigint;
    _round integer := 0;
    _next timestamptz := '-infinity';
    _attempt integer := 0;
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
        exit when pgcombine_internal.lock_tables(copy_updates.queue, _attempt);
        perform pgcombine_internal.require(clock_timestamp() <= until, 'PC006',
            format('the tables of queue "%s" were in use all the time', copy_updates.queue),
            'nothing was changed; look for long transactions in pg_stat_activity, or give more time');
        _attempt := _attempt + 1;
    end loop;
    perform pgcombine_internal.move_updates(copy_updates.queue, _target, _seen, null);
    delete from pgcombine.restoring r where r.tx = txid_current();
end
$$;
