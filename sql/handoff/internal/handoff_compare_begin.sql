-- pgcombine_internal.handoff_compare_begin(repair)
-- Records that a comparison of the servers' tokens begins. handoff_compare_end can then clear the flags for repair that
-- are set now: the flag of this server, and flags of other servers for which equal tokens are enough (column
-- by_tokens). If a server is flagged again later, its flag stays.
--   repair  the id of the comparison
-- Tables written: handoff_replica, handoff_server.
create or replace function pgcombine_internal.handoff_compare_begin(repair uuid)
returns void
language sql
as $$
    update pgcombine.handoff_replica r set repairing = repair where r.needs_repair is not null and r.by_tokens;
    update pgcombine.handoff_server s set repairing = repair where s.needs_repair is not null;
$$;
