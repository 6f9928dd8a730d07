-- pgcombine_internal.handoff_repair_begin(name, dsn, repair)
-- Notes at a coordinator that a rebuild of a server begins. The server is registered if it wasn't, and is marked for
-- repair until handoff_repair_end.
-- If a later event makes another rebuild necessary, handoff_require_repair removes this rebuild's id from the server's
-- row, and the end of this rebuild doesn't clear the mark.
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
