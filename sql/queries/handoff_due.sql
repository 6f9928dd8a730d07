-- The servers to which a replayer should deliver now: hints of a minimum age wait for them, they aren't paused, and if
-- they failed, they may be tried again.
-- Parameters: whether to include servers that may not be tried again yet; the minimum age in seconds.
select r.name
from pgcombine.handoff_replica r
join pgcombine.destination d on d.kind = 'server' and d.name = r.name
where d.state <> 'paused' and (%s or d.state = 'up' or coalesce(d.retry_at <= clock_timestamp(), true))
  and exists (select from pgcombine.handoff_hint h
              where h.destination = r.name and h.since <= now() - %s * interval '1 second')
order by r.name
