-- pgcombine_internal.close_gate(gate) → 'closed' | 'writers' | 'sleeper'
-- Closes a gate for this session, which is about to sleep (see wake).
--   closed   from now on every enqueue notifies. The session looks once more, sleeps, and then opens the gate
--   writers  transactions that have enqueued are under way. Their commits won't notify, so the session sleeps briefly
--   sleeper  another session has closed the gate: enqueues notify as long as that session sleeps
-- It takes session locks, which don't work through a pooler in transaction mode.
create or replace function pgcombine_internal.close_gate(gate oid)
returns text
language plpgsql
as $$
begin
    if not pg_try_advisory_lock(hashtext('pgcombine.sleeper'), close_gate.gate::integer) then
        return 'sleeper';
    end if;
    if not pg_try_advisory_lock(hashtext('pgcombine.gate'), close_gate.gate::integer) then
        perform pg_advisory_unlock(hashtext('pgcombine.sleeper'), close_gate.gate::integer);
        return 'writers';
    end if;
    return 'closed';
end
$$;
