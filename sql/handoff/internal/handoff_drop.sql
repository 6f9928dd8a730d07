-- pgcombine_internal.handoff_drop(destination, token)
-- Deletes a hint that can't be delivered, since its updates are in the quarantine.
-- Tables written: handoff_hint.
create or replace function pgcombine_internal.handoff_drop(destination text, token uuid)
returns void
language sql
as $$
    delete from pgcombine.handoff_hint h where h.destination = handoff_drop.destination and h.token = handoff_drop.token
$$;
