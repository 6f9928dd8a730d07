-- pgcombine_internal.handoff_unregister(name [, empty])
-- Deletes the registration of another server. Writers that still name it don't register it again (see
-- handoff_register_missing).
--   empty  whether it is certain that no hints are on that server. If not, and if writers have named that server or the
--          servers of a queue are unknown, writes that it acknowledged may be missing here or on another server. This
--          server and all registered ones are then flagged until their tokens have been compared (pgcombine replicas
--          repair)
-- Tables written: handoff_replica, handoff_delivery, handoff_quarantine, destination_state, handoff_server,
-- handoff_queue.
-- Errors: PC045 the server isn't registered, or hints or quarantined updates wait for it.
create or replace function pgcombine_internal.handoff_unregister(name text, empty boolean default false)
returns void
language plpgsql
as $$
declare
    _reason constant text := format('server "%s" was removed, and its hints with it (pgcombine replicas repair)', name);
begin
    perform from pgcombine.handoff_replica r where r.name = handoff_unregister.name for update;
    perform pgcombine_internal.require(found, 'PC045',
        format('server "%s" is not registered here', name),
        'pgcombine replicas ls lists the registered servers');
    perform pgcombine_internal.require(
        not exists (select from pgcombine.handoff_hint h where h.destination = handoff_unregister.name)
        and not exists (select from pgcombine.handoff_quarantine q
            where q.destination = handoff_unregister.name), 'PC045',
        format('hints or quarantined updates wait for server "%s"', handoff_unregister.name),
        format('deliver them, or: pgcombine replicas truncate %s --reason WHY', handoff_unregister.name));
    delete from pgcombine.destination_state d where d.kind = 'server' and d.name = handoff_unregister.name;
    delete from pgcombine.handoff_replica r where r.name = handoff_unregister.name;
    if not empty and exists (select from pgcombine.handoff_queue q
                             where q.servers is null or name = any (q.former || q.servers)) then
        perform pgcombine_internal.handoff_require_repair(r.name, _reason, by_tokens => true)
            from pgcombine.handoff_replica r;
        update pgcombine.handoff_server s set needs_repair = _reason, repairing = null;
    end if;
    update pgcombine.handoff_server s set removed = s.removed || handoff_unregister.name
    where handoff_unregister.name <> all (s.removed);
    update pgcombine.handoff_queue q
    set servers = array_remove(q.servers, name), former = array_remove(q.former, name)
    where name = any (q.former || q.servers);
end
$$;
