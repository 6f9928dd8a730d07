-- pgcombine.grant_replay(role)
-- Lets a role that owns nothing replay the hints that are on this server, of all queues (pgcombine handoff run), and
-- remember what was delivered. Where it delivers to, its role there needs grant_handoff with the queues. Privileges:
--   select on handoff_server, handoff_queue, handoff_replica, handoff, hint, destination
--   update of id, epoch, needs_repair, repairing, rows, bytes, measured_at, delivered, deduplicated on handoff_replica
--   select, insert, update, delete on handoff_hint (update: to lock them)
--   select, insert on handoff_delivery, handoff_quarantine
-- With delete on handoff_hint it may also report on servers and pause them (try_destination, destination_delivered,
-- destination_failed, pause_destination), but not on exports, and tidy up (handoff_tidy).
-- Not granted: registering servers, resuming, retrying, dropping and truncating hints, rebuilding.
-- Errors: 42501 the caller may not grant it.
create or replace function pgcombine.grant_replay(role name)
returns void
language plpgsql
as $$
declare
    _grant text;
begin
    foreach _grant in array array[
        'select on pgcombine.handoff_server, pgcombine.handoff_queue, pgcombine.handoff_replica',
        'select on pgcombine.handoff, pgcombine.hint, pgcombine.destination',
        'update (id, epoch, needs_repair, repairing, rows, bytes, measured_at, delivered, deduplicated) on pgcombine.handoff_replica',
        'select, insert, update, delete on pgcombine.handoff_hint',
        'select, insert on pgcombine.handoff_delivery, pgcombine.handoff_quarantine'
    ] loop
        execute format('grant %s to %I', _grant, role);
    end loop;
end
$$;
