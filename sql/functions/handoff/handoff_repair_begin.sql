-- pgcombine.handoff_repair_begin(name, dsn, repair)
-- At a home: a rebuild of a server begins. It is marked for repair until handoff_repair_end; what happens from now on
-- that needs another one takes the rebuild's name off (handoff_mark). A server that isn't registered is.
--   repair  names the rebuild
-- Tables written: handoff_replica, destination_state.
-- Errors: those of handoff_register.
create or replace function pgcombine.handoff_repair_begin(name text, dsn text, repair uuid)
returns void
language plpgsql
as $$
begin
    perform pgcombine.handoff_acquaint(array[handoff_repair_begin.name], array[handoff_repair_begin.dsn]);
    update pgcombine.handoff_replica r
    set needs_repair = coalesce(r.needs_repair, 'a rebuild was begun'), repairing = repair
    where r.name = handoff_repair_begin.name;
end
$$;
