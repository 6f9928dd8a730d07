-- pgcombine_internal.handoff_quarantine_updates(destination, token, numbers, sqlstates, errors)
-- Quarantines updates of a hint that the destination refuses for their data, or a whole hint that it refuses.
--   numbers  places of the updates in the write, from 1; 0: the whole write, and the hint is deleted
-- Tables written: handoff_quarantine, handoff_hint.
create or replace function pgcombine_internal.handoff_quarantine_updates(destination text, token uuid,
    numbers integer[], sqlstates text[], errors text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into pgcombine.handoff_quarantine (destination, token, number, queue, shape, payload, sqlstate, error)
    select h.destination, h.token, u.number, h.queue, h.shape,
           case u.number when 0 then h.payload else pgcombine_internal.handoff_subset(h.payload, array[u.number]) end,
           u.sqlstate, u.error
    from pgcombine.handoff_hint h, unnest(numbers, sqlstates, errors) u (number, sqlstate, error)
    where h.destination = handoff_quarantine_updates.destination and h.token = handoff_quarantine_updates.token
    on conflict do nothing;
    delete from pgcombine.handoff_hint h
    where 0 = any (numbers) and h.destination = handoff_quarantine_updates.destination
        and h.token = handoff_quarantine_updates.token;
end
$$;
