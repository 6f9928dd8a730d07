-- pgcombine.asleep(queue) → boolean
-- Whether a worker sleeps on the queue and wants to be notified. A commit that notifies takes a lock of the whole database, so
-- writers ask first. The gate is an advisory lock: writers share it until their transaction ends, a worker that goes to sleep
-- holds it alone. So while it sleeps every writer notifies, and no writer can commit unseen behind the sleeper's last look.
-- Any role can hold the gate. While one does, enqueues notify although nobody sleeps, or workers nap instead of sleeping
-- (see close_gate): updates are combined some tenths of a second later at most.
create or replace function pgcombine.asleep(queue text)
returns boolean
language sql volatile
as $$
    select not pg_try_advisory_xact_lock_shared(hashtext('pgcombine.gate'), hashtext(queue))
$$;
