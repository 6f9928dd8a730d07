-- The other servers to which a replayer should deliver now: a hint of the minimum age waits for the server, the server
-- isn't paused, and after a failure its retry_at has passed.
-- Parameters: whether to include servers whose retry_at hasn't passed; the minimum age in seconds.
select r.name
from pgcombine.handoff_replica r
join pgcombine.destination d on d.kind = 'server' and d.name = r.name
where d.state <> 'paused' and (%s or d.state = 'up' or coalesce(d.retry_at <= clock_timestamp(), true))
  and exists (select from pgcombine.handoff_hint h
              where h.destination = r.name and h.since <= now() - %s * interval '1 second')
order by r.name
