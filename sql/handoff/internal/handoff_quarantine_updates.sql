-- pgcombine_internal.handoff_quarantine_updates(destination, token, numbers, sqlstates, errors)
-- Quarantines updates of a hint that the destination refuses for their data, or a whole hint that it refuses.
--   numbers  places of the updates in the write, from 1; 0: the whole write, and the hint is deleted
-- Runs with its owner's rights, for roles that may replay. It quarantines only updates of hints, so the caller can't
-- insert others.
-- Tables written: handoff_quarantine, handoff_hint.
-- Errors: 42501 the caller lacks the right to replay.
create or replace function pgcombine_internal.handoff_quarantine_updates(destination text, token uuid,
    numbers integer[],
    sqlstates text[], errors text[])
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.require(pgcombine_internal.has_right('', 'replay', pgcombine_internal.caller()), '42501',
        format('permission denied: role "%s" may not quarantine updates', pgcombine_internal.caller()),
        format('select pgcombine.grant_right(''replay'', %L)', pgcombine_internal.caller()));
    insert into pgcombine.handoff_quarantine (destination, token, number, queue, shape, payload, sqlstate, error)
    select h.destination, h.token, u.number, h.queue, h.shape,
           case u.number when 0 then h.payload else pgcombine_internal.handoff_subset(h.payload, array[u.number]) end,
           u.sqlstate, u.error
    from pgcombine.handoff_hint h,
         unnest(handoff_quarantine_updates.numbers, handoff_quarantine_updates.sqlstates,
             handoff_quarantine_updates.errors) u (number, sqlstate, error)
    where h.destination = handoff_quarantine_updates.destination and h.token = handoff_quarantine_updates.token
    on conflict do nothing;
    delete from pgcombine.handoff_hint h
    where 0 = any (handoff_quarantine_updates.numbers) and h.destination = handoff_quarantine_updates.destination
        and h.token = handoff_quarantine_updates.token;
end
$$;
