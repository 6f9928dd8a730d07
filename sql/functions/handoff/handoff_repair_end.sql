-- pgcombine.handoff_repair_end(name, id, epoch, repair, sources, held, reason) → boolean
-- At a home: a rebuild of a server has ended. It is taken for who it is now, and deliveries go on unless they were
-- stopped by hand. Updates that it refused, or that were to be retried, came with the copy: what is quarantined for it
-- is what was for the servers it is a copy of. Returns whether it needs no other repair.
--   sources  the servers of which it is a copy
--   held     the writes that came with the copy, of those that have updates in the quarantine for the sources
--   reason   why the sources themselves need repair, and so does it; null: they don't
-- Tables written: handoff_replica, handoff_delivery, handoff_hint, handoff_quarantine, destination_state.
create or replace function pgcombine.handoff_repair_end(name text, id uuid, epoch integer, repair uuid, sources text[],
    held uuid[], reason text default null)
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
    where q.destination = any (sources) and q.token = any (held)
    on conflict do nothing;
    perform pgcombine.handoff_forget(handoff_repair_end.name);
    update pgcombine.handoff_replica r
    set id = handoff_repair_end.id, epoch = handoff_repair_end.epoch, repairing = null,
        needs_repair = case when r.repairing = repair then handoff_repair_end.reason else r.needs_repair end
    where r.name = handoff_repair_end.name
    returning r.needs_repair into _needs_repair;
    if exists (select from pgcombine.destination d
               where d.kind = 'server' and d.name = handoff_repair_end.name and d.reason is distinct from 'by hand') then
        perform pgcombine.resume_destination('server', handoff_repair_end.name);
    end if;
    return _needs_repair is null;
end
$$;
