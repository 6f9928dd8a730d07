-- pgcombine_internal.handoff_repair_begin(name, dsn, repair)
-- Records at a coordinator that a rebuild of a server begins: registers the server if it is missing, and flags it for
-- repair until handoff_repair_end.
-- If the server is flagged for another reason later, handoff_require_repair removes this rebuild's id from the server's
-- row. The end of this rebuild then doesn't clear the flag.
--   repair  the id of the rebuild
-- Tables written: handoff_replica, handoff_queue, destination_state.
-- Errors: those of handoff_register.
create or replace function pgcombine_internal.handoff_repair_begin(name text, dsn text, repair uuid)
returns void
language plpgsql
as $$
begin
    perform pgcombine_internal.handoff_register(handoff_repair_begin.name, handoff_repair_begin.dsn)
    where not exists (select from pgcombine.handoff_replica r where r.name = handoff_repair_begin.name)
      and not exists (select from pgcombine.handoff_server s where s.name = handoff_repair_begin.name);
    -- from now on the server gets hints of all writes, also of those of writers that don't name it yet
    update pgcombine.handoff_queue q
    set servers = array(select s from unnest(q.servers || handoff_repair_begin.name) s order by s collate "C"),
        replicas = greatest(q.replicas, cardinality(q.servers) + 1)
    where q.replicas >= cardinality(q.servers) and handoff_repair_begin.name <> all (q.servers)
      and exists (select from pgcombine.handoff_replica r where r.name = handoff_repair_begin.name);
    update pgcombine.handoff_replica r
    set needs_repair = coalesce(r.needs_repair, 'a rebuild was begun'), repairing = repair, by_tokens = false
    where r.name = handoff_repair_begin.name;
end
$$;
