-- pgcombine.grant_handoff(role [, queue …])
-- Lets a role write to these queues on this server as one of several, and deliver to it what others keep for it
-- (ReplicatedQueue). To be called on each server. Hints and tokens it reaches through functions only, which check for
-- each queue that it may insert there: handoff_claim, handoff_put, handoff_note, handoff_retire, handoff_remembers,
-- handoff_lags.
--   queue  '*': all, and those that will be made
-- Not granted: reading (grant_read); naming and registering servers, which the owner does first; what replayers do
-- (grant_replay); retrying, dropping and truncating hints, pausing, rebuilding.
-- Privileges: select pgcombine.right_privileges('handoff'), and ('handoff', 'wc') for those of a queue.
-- Errors: PC001 unknown queue; 42501 the caller isn't the owner.
create or replace function pgcombine.grant_handoff(role name, variadic queues text[] default '{}')
returns void
language sql
as $$
    select pgcombine.grant_right('handoff', grant_handoff.role, grant_handoff.queues)
$$;
