-- pgcombine_internal.handoff_require_repair(destination, reason [, by_tokens])
-- Marks a server for repair: hints alone can't make it complete any more.
-- The first reason stays, unless a rebuild or a comparison is in progress, whose end then doesn't remove the mark. A
-- mark that needs a rebuild replaces one that doesn't. pgcombine replicas verify shows what the server lacks;
-- pgcombine replicas rebuild makes it complete.
--   by_tokens  whether the mark may go when the servers' tokens are equal (pgcombine replicas repair)
-- Tables written: handoff_replica.
create or replace function pgcombine_internal.handoff_require_repair(destination text, reason text,
    by_tokens boolean default false)
returns void
language sql
as $$
    update pgcombine.handoff_replica r
    set needs_repair = handoff_require_repair.reason, repairing = null,
        by_tokens = handoff_require_repair.by_tokens and (r.needs_repair is null or r.by_tokens)
    where r.name = handoff_require_repair.destination
      and (r.needs_repair is null or r.repairing is not null or r.by_tokens and not handoff_require_repair.by_tokens)
$$;
