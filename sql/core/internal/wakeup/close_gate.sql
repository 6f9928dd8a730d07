-- pgcombine_internal.close_gate(queue) → 'closed' | 'writers' | 'sleeper'
-- Closes the gate of a queue for this session, which is about to sleep (see asleep).
--   closed   from now on every enqueue notifies. The session looks once more, sleeps, and then opens the gate
--   writers  transactions that have enqueued are under way. Their commits won't notify, so the session sleeps briefly
--   sleeper  another session has closed the gate: enqueues notify as long as that session sleeps
-- It takes session locks, which don't work through a pooler in transaction mode.
create or replace function pgcombine_internal.close_gate(queue text)
returns text
language plpgsql
as $$
begin
    if not pg_try_advisory_lock(hashtext('pgcombine.sleeper'), hashtext(close_gate.queue)) then
        return 'sleeper';
    end if;
    if not pg_try_advisory_lock(hashtext('pgcombine.gate'), hashtext(close_gate.queue)) then
        perform pg_advisory_unlock(hashtext('pgcombine.sleeper'), hashtext(close_gate.queue));
        return 'writers';
    end if;
    return 'closed';
end
$$;
