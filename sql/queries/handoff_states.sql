-- The other servers with the states of deliveries to them.
select r.name, r.dsn, d.state
from pgcombine.handoff_replica r
join pgcombine.destination d on d.kind = 'server' and d.name = r.name
