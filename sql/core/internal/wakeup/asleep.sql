-- pgcombine_internal.asleep(gate) → boolean
-- Returns whether a worker sleeps behind a gate and wants to be notified. Writers ask this first, since a commit that
-- notifies takes a lock of the whole database.
--   gate  the table whose inserts are the work: <queue>_updates
-- The gate is an advisory lock. Writers share it until their transaction ends; a worker that goes to sleep holds it
-- alone. So while the worker sleeps, every writer notifies. No writer can commit unnoticed after the worker's last
-- look. Any role can take the lock. While a role does, enqueues notify although no worker sleeps, or workers nap
-- instead of sleeping (see close_gate). Updates are then combined a few tenths of a second later at most.
create or replace function pgcombine_internal.asleep(gate oid)
returns boolean
language sql volatile
as $$
    select not pg_try_advisory_xact_lock_shared(hashtext('pgcombine.gate'), gate::integer)
$$;
