-- The number of hints for a server that have waited since a given time or longer, and the state and the reason of the
-- server's destination (both null if the number is 0). Parameters: the server; the time.
select count(*), min(d.state), min(d.reason)
from pgcombine.handoff_hint h
join pgcombine.destination d on d.kind = 'server' and d.name = h.destination
where h.destination = %s and h.since <= %s
