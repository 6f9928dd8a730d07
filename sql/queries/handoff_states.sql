-- The other servers: name, address, and the state of the deliveries to each.
select r.name, r.dsn, d.state
from pgcombine.handoff_replica r
join pgcombine.destination d on d.kind = 'server' and d.name = r.name
