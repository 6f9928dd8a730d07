-- pgcombine.grant_replay(role)
-- Lets a role replay the hints that are on this server, of all queues (pgcombine handoff run), and remember what was
-- delivered. Where it delivers to, its role there needs grant_handoff with the queues. It may also report on servers and
-- pause them (try_destination, destination_delivered, destination_failed, pause_destination), but not exports, and tidy
-- up (handoff_tidy).
-- Not granted: registering servers, resuming, retrying, dropping and truncating hints, rebuilding.
-- Privileges: select pgcombine.right_privileges('replay').
-- Errors: 42501 the caller isn't the owner.
create or replace function pgcombine.grant_replay(role name)
returns void
language sql
as $$
    select pgcombine.grant_right('replay', grant_replay.role)
$$;
