-- pgcombine_internal.handoff_compare_end(repair, names) → setof text
-- Clears the given servers' flags for repair, as far as handoff_compare_begin recorded these flags. Returns the servers
-- that this server still flags for repair.
--   repair  the id of the comparison
--   names   the servers that the comparison found complete
-- Tables written: handoff_replica, handoff_server.
create or replace function pgcombine_internal.handoff_compare_end(repair uuid, names text[])
returns setof text
language sql
as $$
    update pgcombine.handoff_replica r set needs_repair = null, repairing = null, by_tokens = false
    where r.repairing = repair and r.by_tokens and r.name = any (names);
    update pgcombine.handoff_server s set needs_repair = null, repairing = null
    where s.repairing = repair and s.name = any (names);
    select r.name from pgcombine.handoff_replica r where r.needs_repair is not null
    union all
    select s.name from pgcombine.handoff_server s where s.needs_repair is not null
$$;
