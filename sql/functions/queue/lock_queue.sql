-- pgcombine.lock_queue(queue, wait) → boolean
-- Takes the tables of a queue and its views for the caller alone; false: not within so many milliseconds. Whoever asks for
-- such a lock holds up all who come after it while it waits, so it is asked for briefly, again and again.
create or replace function pgcombine.lock_queue(queue text, wait integer)
returns boolean
language plpgsql
as $$
declare
    _timeout constant text := current_setting('lock_timeout');
begin
    perform set_config('lock_timeout', lock_queue.wait || 'ms', true);
    -- with the view all that it reads, in the order of its readers
    execute format('lock table pgcombine.%I in access exclusive mode', lock_queue.queue || '_current');
    perform set_config('lock_timeout', _timeout, true);
    return true;
exception when lock_not_available or deadlock_detected then
    return false;
end
$$;
