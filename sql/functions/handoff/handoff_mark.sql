-- pgcombine.handoff_mark(destination, reason)
-- Marks that hints alone can't make a server complete any more; the first reason stays, but one that comes while a
-- rebuild is under way is a new one. pgcombine hints verify tells what it lacks, pgcombine handoff rebuild makes it
-- complete.
-- Tables written: handoff_replica.
create or replace function pgcombine.handoff_mark(destination text, reason text)
returns void
language sql
as $$
    update pgcombine.handoff_replica r set needs_repair = handoff_mark.reason, repairing = null
    where r.name = handoff_mark.destination and (r.needs_repair is null or r.repairing is not null)
$$;
