-- pgcombine_internal.handoff_mark(destination, reason)
-- Marks a server for repair: hints alone can't make it complete any more. The first reason stays unless a rebuild is
-- under way.
-- A reason that comes during a rebuild replaces the first, since the server needs another rebuild. pgcombine hints
-- verify shows what the server lacks; pgcombine handoff rebuild makes it complete.
-- Tables written: handoff_replica.
create or replace function pgcombine_internal.handoff_mark(destination text, reason text)
returns void
language sql
as $$
    update pgcombine.handoff_replica r set needs_repair = handoff_mark.reason, repairing = null
    where r.name = handoff_mark.destination and (r.needs_repair is null or r.repairing is not null)
$$;
