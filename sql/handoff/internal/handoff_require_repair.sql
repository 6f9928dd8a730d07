-- pgcombine_internal.handoff_require_repair(destination, reason [, by_tokens])
-- Flags a server for repair: hints alone can no longer make it complete.
-- The first reason stays, with two exceptions. During a rebuild or a comparison a new reason replaces the first, and
-- the end of the rebuild or comparison then doesn't clear the flag. A reason that needs a rebuild replaces a reason
-- that needs none.
--   by_tokens  whether the flag may be cleared once the servers' tokens are equal (pgcombine replicas repair). It has
--              no effect if the former reason needs a rebuild
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
