-- pgcombine_internal.handoff_repair_end(name, id, epoch, repair, sources, quarantined, reason) → boolean
-- Records at a coordinator that a rebuild of a server has ended: stores the server's new identity and resumes
-- deliveries, unless they were paused manually. Returns whether the server needs no repair now.
-- The rebuilt server has the updates that it had refused before, except those that its sources refused. So its rows in
-- handoff_quarantine are replaced by copies of the sources' rows, and the hints that retry its refused updates are
-- deleted.
--   sources      the servers from which the rebuilt server was copied
--   quarantined  tokens of the copied writes of which a source refused updates
--   reason       why the rebuilt server needs repair, since its sources do. Null: they need none
-- Tables written: handoff_replica, handoff_delivery, handoff_hint, handoff_quarantine, destination_state.
create or replace function pgcombine_internal.handoff_repair_end(name text, id uuid, epoch integer, repair uuid,
    sources text[], quarantined uuid[], reason text default null)
returns boolean
language plpgsql
as $$
declare
    _needs_repair text;
begin
    delete from pgcombine.handoff_hint h where h.destination = handoff_repair_end.name and h.origin is not null;
    delete from pgcombine.handoff_quarantine q where q.destination = handoff_repair_end.name;
    insert into pgcombine.handoff_quarantine (destination, token, number, queue, shape, payload, sqlstate, error, since)
    select handoff_repair_end.name, q.token, q.number, q.queue, q.shape, q.payload, q.sqlstate, q.error, q.since
    from pgcombine.handoff_quarantine q
    where q.destination = any (sources) and q.token = any (quarantined)
    on conflict do nothing;
    perform pgcombine_internal.handoff_forget(name);
    update pgcombine.handoff_replica r
    set id = handoff_repair_end.id, epoch = handoff_repair_end.epoch, repairing = null,
        needs_repair = case when r.repairing = repair then reason else r.needs_repair end
    where r.name = handoff_repair_end.name
    returning r.needs_repair into _needs_repair;
    if exists (select from pgcombine.destination d
               where d.kind = 'server' and d.name = handoff_repair_end.name
                   and d.reason is distinct from 'manually') then
        perform pgcombine_internal.resume_destination('server', name);
    end if;
    return _needs_repair is null;
end
$$;
