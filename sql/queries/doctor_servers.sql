-- The other servers: the writes that wait here for them, the reason of the last failure or of the pause, and why they
-- need repair.
select s.destination, s.state, d.reason, s.writes, s.oldest_seconds, r.needs_repair
from pgcombine.hint_stat s
join pgcombine.handoff_replica r on r.name = s.destination
join pgcombine.destination d on d.kind = 'server' and d.name = s.destination
order by s.destination
