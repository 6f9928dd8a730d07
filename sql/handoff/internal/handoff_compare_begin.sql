-- pgcombine_internal.handoff_compare_begin(repair)
-- Notes that a comparison of the servers' tokens begins. It can end the marks of the servers that are marked now
-- (handoff_compare_end). A mark that is made meanwhile removes the comparison's id.
--   repair  the id of the comparison
-- Tables written: handoff_replica, handoff_server.
create or replace function pgcombine_internal.handoff_compare_begin(repair uuid)
returns void
language sql
as $$
    update pgcombine.handoff_replica r set repairing = repair where r.needs_repair is not null and r.by_tokens;
    update pgcombine.handoff_server s set repairing = repair where s.needs_repair is not null;
$$;
