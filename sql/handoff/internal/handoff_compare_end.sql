-- pgcombine_internal.handoff_compare_end(repair, names, lacking) → setof text
-- Clears the given servers' flags for repair, as far as handoff_compare_begin recorded these flags. Returns the servers
-- that this server still flags for repair.
--   repair   the id of the comparison
--   names    the servers that the comparison found complete
--   lacking  the servers that lack writes which no server can forward. They are flagged for repair
-- Tables written: handoff_replica, handoff_server.
create or replace function pgcombine_internal.handoff_compare_end(repair uuid, names text[], lacking text[])
returns setof text
language sql
as $$
    update pgcombine.handoff_replica r set needs_repair = null, repairing = null, by_tokens = false
    where r.repairing = repair and r.by_tokens and r.name = any (names);
    update pgcombine.handoff_server s set needs_repair = null, repairing = null
    where s.repairing = repair and s.name = any (names);
    select pgcombine_internal.handoff_require_repair(l, 'it lacks writes that no server can forward', by_tokens => true)
    from unnest(lacking) l;
    update pgcombine.handoff_server s set needs_repair = 'it lacks writes that no server can forward', repairing = null
    where s.name = any (lacking) and (s.needs_repair is null or s.repairing is not null);
    select r.name from pgcombine.handoff_replica r where r.needs_repair is not null
    union all
    select s.name from pgcombine.handoff_server s where s.needs_repair is not null
$$;
