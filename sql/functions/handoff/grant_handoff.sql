-- pgcombine.grant_handoff(role)
-- Lets a role that owns nothing write to this server as one of several, deliver what others keep for it, and replay
-- the hints that are here (ReplicatedQueue, pgcombine handoff run), for queues on whose <queue>_updates it may insert.
-- To be called on each server, and again after an upgrade. What isn't granted: registering servers by hand, retrying,
-- dropping and truncating hints, rebuilding.
create or replace function pgcombine.grant_handoff(role name)
returns void
language plpgsql
as $$
declare
    _grant text;
begin
    foreach _grant in array array[
        'select, insert on pgcombine.handoff_server',
        'select, insert, update on pgcombine.handoff_replica, pgcombine.handoff_queue, pgcombine.destination_state',
        'select, insert on pgcombine.handoff_token, pgcombine.handoff_delivery, pgcombine.handoff_quarantine',
        'select, insert, update, delete on pgcombine.handoff_hint', -- update: to lock them
        'select, delete on pgcombine.handoff_partial',
        'select on pgcombine.handoff, pgcombine.hint, pgcombine.destination'
    ] loop
        execute format('grant %s to %I', _grant, role);
    end loop;
end
$$;
