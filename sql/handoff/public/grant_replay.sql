-- pgcombine.grant_replay(role)
-- Lets a role replay the hints of all queues on this server (pgcombine handoff run) and record deliveries. On the
-- servers it delivers to, its role needs grant_handoff for the queues.
-- It may also report on servers and pause them (try_destination, destination_delivered, destination_failed,
-- pause_destination), but not exports, quarantine hints (handoff_hold), and call handoff_tidy. It makes no hints and
-- changes none.
-- Not granted: registering servers, resuming, retrying, dropping and truncating hints, rebuilding.
-- Privileges: select pgcombine_internal.right_privileges('replay') lists them; revoke_right takes them away.
-- Errors: 42501 the caller isn't the owner.
create or replace function pgcombine.grant_replay(role name)
returns void
language sql
as $$
    select pgcombine_internal.grant_right('replay', grant_replay.role)
$$;
