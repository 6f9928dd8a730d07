-- pgcombine_internal.handoff_unregister(name)
-- Deletes the registration of another server.
-- Tables written: handoff_replica, handoff_delivery, handoff_quarantine, destination_state.
-- Errors: PC045 the server isn't registered, or hints or quarantined updates wait for it.
create or replace function pgcombine_internal.handoff_unregister(name text)
returns void
language plpgsql
as $$
begin
    perform from pgcombine.handoff_replica r where r.name = handoff_unregister.name for update;
    perform pgcombine_internal.require(found, 'PC045', format('server "%s" is not registered here', handoff_unregister.name),
        'pgcombine replicas ls lists the registered ones');
    perform pgcombine_internal.require(
        not exists (select from pgcombine.handoff_hint h where h.destination = handoff_unregister.name)
        and not exists (select from pgcombine.handoff_quarantine q where q.destination = handoff_unregister.name), 'PC045',
        format('hints wait for server "%s"', handoff_unregister.name),
        format('deliver them, or: pgcombine hints truncate %s --reason WHY', handoff_unregister.name));
    perform pgcombine_internal.drop_destination('server', handoff_unregister.name);
    delete from pgcombine.handoff_replica r where r.name = handoff_unregister.name;
end
$$;
