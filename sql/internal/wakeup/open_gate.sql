-- pgcombine_internal.open_gate(queue)
-- Opens the gate that this session has closed: enqueues don't notify any more.
create or replace function pgcombine_internal.open_gate(queue text)
returns void
language sql
as $$
    select pg_advisory_unlock(hashtext('pgcombine.gate'), hashtext(open_gate.queue));
    select pg_advisory_unlock(hashtext('pgcombine.sleeper'), hashtext(open_gate.queue));
$$;
