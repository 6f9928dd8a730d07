-- pgcombine_internal.handoff_repair_begin(name, dsn, repair)
-- Records at a coordinator that a rebuild of a server begins: registers the server if it is missing, and flags it for
-- repair until handoff_repair_end.
-- If the server is flagged for another reason later, handoff_require_repair removes this rebuild's id from the server's
-- row. The end of this rebuild then doesn't clear the flag.
--   repair  the id of the rebuild
-- Tables written: handoff_replica, destination_state.
-- Errors: those of handoff_register.
create or replace function pgcombine_internal.handoff_repair_begin(name text, dsn text, repair uuid)
returns void
language plpgsql
as $$
begin
    perform pgcombine_internal.handoff_register_missing(array[handoff_repair_begin.name],
        array[handoff_repair_begin.dsn]);
    update pgcombine.handoff_replica r
    set needs_repair = coalesce(r.needs_repair, 'a rebuild was begun'), repairing = repair, by_tokens = false
    where r.name = handoff_repair_begin.name;
end
$$;
