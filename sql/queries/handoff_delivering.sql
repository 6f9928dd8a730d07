-- The number of hints that have waited for a server since before a time, and the state of deliveries. Parameters: the
-- server; the time.
select count(*), min(d.state), min(d.reason)
from pgcombine.handoff_hint h
join pgcombine.destination d on d.kind = 'server' and d.name = h.destination
where h.destination = %s and h.since <= %s
