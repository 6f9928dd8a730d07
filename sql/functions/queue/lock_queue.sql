-- pgcombine.lock_queue(queue, until, suffix)
-- Takes the two tables of a queue for the caller alone. Whoever asks for such a lock holds up all who come after
-- it while it waits, so it waits briefly (longer from time to time, so that autovacuum gives way: it does after
-- deadlock_timeout) and tries again; what was enqueued in between is moved meanwhile (suffix null: it is not).
-- Errors: PC006 not until then.
create or replace function pgcombine.lock_queue(queue text, until timestamptz, suffix text)
returns void
language plpgsql
as $$
declare
    _timeout constant text := current_setting('lock_timeout');
    _wait integer := 100; -- ms
begin
    loop
        begin
            perform set_config('lock_timeout', _wait || 'ms', true);
            -- in the order of the readers of <queue>_current
            execute format('lock table pgcombine.%I, pgcombine.%I in access exclusive mode',
                lock_queue.queue || '_values', lock_queue.queue || '_updates');
            perform set_config('lock_timeout', _timeout, true);
            return;
        exception when lock_not_available or deadlock_detected then
            if clock_timestamp() > lock_queue.until then
                raise exception 'the tables of queue "%" were in use all the time', lock_queue.queue
                    using errcode = 'PC006', hint = 'nothing was changed; look for long transactions in pg_stat_activity, or give more time';
            end if;
        end;
        perform pg_sleep(_wait / 1000.0 * (0.5 + random()));
        _wait := case when _wait < 2000 then _wait * 2 else 100 end;
        if lock_queue.suffix is not null then
            perform pgcombine.move_updates(lock_queue.queue, lock_queue.suffix);
        end if;
    end loop;
end
$$;
