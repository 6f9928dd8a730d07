-- pgcombine.grant_handoff(role [, queue …])
-- Lets a role write to queues on this server as one of several servers (ReplicatedQueue), and deliver to it the writes
-- that others keep for it. Call it on each server.
-- The role uses hints and tokens only through functions that check for each queue that it may insert there:
-- handoff_claim, handoff_put, handoff_keep, handoff_note, handoff_retire, handoff_remembers, handoff_refuse,
-- handoff_accepts, handoff_survey, handoff_kept_of, handoff_known.
--   queue  '*': all queues, also later ones
-- Not granted: reading (grant_read); naming and registering servers, which the owner does first; replaying
-- (grant_replay); retrying, dropping and truncating hints, pausing, rebuilding.
-- Privileges: select pgcombine_internal.right_privileges('handoff') lists them, ('handoff', 'wc') those of a queue; revoke_right
-- takes them away.
-- Errors: PC001 unknown queue; 42501 the caller isn't the owner.
create or replace function pgcombine.grant_handoff(role name, variadic queues text[] default '{}')
returns void
language sql
as $$
    select pgcombine_internal.grant_right('handoff', grant_handoff.role, grant_handoff.queues)
$$;
