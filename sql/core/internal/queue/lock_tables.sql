-- pgcombine_internal.lock_tables(queue, attempt [, wholly]) → boolean
-- Tries to lock a queue's tables and views, and the tables' partitions, against all other use, and the queue's catalog
-- row against changes, until the transaction ends. If these objects don't become free in time, the function releases
-- its locks, pauses, and returns false. The caller then tries again.
-- Other transactions lock these objects in any order. So waiting for one of them while holding another could be a
-- deadlock. Sessions that wait for this attempt began to wait after the attempt began, and PostgreSQL looks for a
-- deadlock only after deadlock_timeout. So from half of that time on the attempt takes only what is free at once.
-- The attempt may wait longer for its first lock, since it holds no other lock then. The first lock changes with each
-- attempt: it is the lock that readers of <queue>_current, writers, or readers of values take first.
--   attempt  the number of the attempt, from 0. The first wait is short, since later sessions wait behind the attempt.
--            The wait doubles with each attempt, up to 13 seconds
--   wholly   false: don't lock the partitions
create or replace function pgcombine_internal.lock_tables(queue text, attempt integer, wholly boolean default true)
returns boolean
language plpgsql
as $$
declare
    _timeout constant text := current_setting('lock_timeout');
    _began constant timestamptz := clock_timestamp();
    -- half of deadlock_timeout, in ms
    _patience constant numeric := (select s.setting::numeric / 2 from pg_settings s where s.name = 'deadlock_timeout');
    _wait constant numeric := 100 * 2 ^ least(attempt, 7); -- ms
    _left numeric := _wait;
    _updates constant text := format('pgcombine.%I', queue || '_updates');
    _values constant text := format('pgcombine.%I', queue || '_values');
    _ordered constant text[] := array[ -- in the order in which readers of <queue>_current take these locks
        -- LOCK TABLE on a view would also lock the tables that the view reads
        format('alter view pgcombine.%I reset (security_barrier)', queue || '_current'),
        format('lock table only %s in access exclusive mode', _values),
        format('alter view pgcombine.%I reset (security_barrier)', queue || '_pending'),
        format('lock table only %s in access exclusive mode', _updates)];
    _statement text;
begin
    begin
        for _statement in
            select _ordered[(array[1, 4, 2])[1 + attempt % 3]]
            union all
            select * from unnest(_ordered)
            union all
            select format('lock table only %s in access exclusive mode', r)
            from to_regclass(format('pgcombine.%I', queue || '_contributions')) r where r is not null
            union all
            select format('lock table only %s in access exclusive mode', t.relid::regclass)
            from unnest(array[_values, _updates]) parent cross join lateral pg_partition_tree(parent::regclass) t
            where wholly
        loop
            exit when _left < 1 and wholly; -- the statement after the loop locks the rest
            perform set_config('lock_timeout', greatest(1, ceil(_left)) || 'ms', true);
            execute _statement;
            _left := _patience - 1000 * extract(epoch from clock_timestamp() - _began);
        end loop;
        if wholly then
            execute format('lock table pgcombine.%I in access exclusive mode nowait', queue || '_current');
        end if;
        perform from pgcombine.queue q where q.queue = lock_tables.queue for no key update nowait;
        perform set_config('lock_timeout', _timeout, true);
        return true;
    exception when lock_not_available or deadlock_detected then null;
    end;
    perform pg_sleep(_wait / 1000 * (0.5 + random()));
    return false;
end
$$;
