-- pgcombine.open_gate(queue)
-- Opens the gate that this session closed: enqueues don't notify any more.
create or replace function pgcombine.open_gate(queue text)
returns void
language plpgsql
as $$
begin
    perform pg_advisory_unlock(hashtext('pgcombine.gate'), hashtext(open_gate.queue));
    perform pg_advisory_unlock(hashtext('pgcombine.sleeper'), hashtext(open_gate.queue));
end
$$;
