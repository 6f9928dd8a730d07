-- pgcombine.grant_handoff(role [, queue …])
-- Lets a role that owns nothing write to these queues on this server as one of several, and deliver to it what others
-- keep for it (ReplicatedQueue). To be called on each server. Privileges:
--   insert on <queue>_updates of each queue named; the role may have it already
--   select on handoff_server, handoff_queue; of handoff_replica name, id, epoch, needs_repair; of handoff_partial slots
-- Hints and tokens it reaches through functions only, which check for each queue that it may insert there:
-- handoff_claim, handoff_put, handoff_note, handoff_retire, handoff_remembers, handoff_lags.
-- Not granted: select on <queue>_current, to read; naming and registering servers, which the owner does first; what
-- replayers do (grant_replay); retrying, dropping and truncating hints, pausing, rebuilding.
-- Errors: PC001 unknown queue; 42501 the caller may not grant it.
create or replace function pgcombine.grant_handoff(role name, variadic queues text[] default '{}')
returns void
language plpgsql
as $$
declare
    _grant text;
    _queue text;
begin
    foreach _grant in array array[
        'select on pgcombine.handoff_server, pgcombine.handoff_queue',
        'select (name, id, epoch, needs_repair) on pgcombine.handoff_replica',
        'select (slots) on pgcombine.handoff_partial'
    ] loop
        execute format('grant %s to %I', _grant, role);
    end loop;
    foreach _queue in array queues loop
        perform pgcombine.require_queue(_queue);
        execute format('grant insert on pgcombine.%I to %I', _queue || '_updates', role);
    end loop;
end
$$;
