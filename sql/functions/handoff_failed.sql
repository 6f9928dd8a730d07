-- pgcombine.handoff_failed(name, reason [, pause]) → timestamptz
-- Records that a server took no delivery; when to try again. After one failure it is suspect, after three down; the time
-- doubles with each, from half a second to a minute, give or take a half, so that many don't come back at once.
--   pause  time won't mend it (another definition of the queue, lost data): paused until handoff_resume
-- Tables written: handoff_replica.
create or replace function pgcombine.handoff_failed(name text, reason text, pause boolean default false)
returns timestamptz
language sql
as $$
    update pgcombine.handoff_replica r
    set failures = r.failures + 1,
        state = case when handoff_failed.pause or r.state = 'paused' then 'paused' when r.failures >= 2 then 'down' else 'suspect' end,
        reason = handoff_failed.reason,
        retry_at = now() + least(60, 0.5 * 2 ^ least(r.failures, 10)) * (0.5 + random()) * interval '1 second'
    where r.name = handoff_failed.name
    returning r.retry_at
$$;
