-- pgcombine_internal.handoff_due(age [, force]) → name
-- Returns the servers to which a replayer should deliver now. They have hints of that age, aren't paused and, if they
-- failed, may be tried again.
--   force  whether to include servers that failed just now
create or replace function pgcombine_internal.handoff_due(age interval, force boolean default false, out name text)
returns setof text
language sql stable
as $$
    select r.name
    from pgcombine.handoff_replica r
    join pgcombine.destination d on d.kind = 'server' and d.name = r.name
    where d.state <> 'paused' and (force or d.state = 'up' or coalesce(d.retry_at <= clock_timestamp(), true))
      and exists (select from pgcombine.handoff_hint h where h.destination = r.name and h.since <= now() - handoff_due.age)
    order by r.name
$$;
