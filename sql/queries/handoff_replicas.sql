-- The other servers: their registrations, and columns of the view handoff.
select r.name, r.dsn, r.id, r.max_rows, r.max_bytes, r.when_full,
       h.state, h.reason, h.retry_at, h.needs_repair, h.writes, h.rows, h.bytes, h.oldest_age,
       h.delivered, h.deduplicated, h.quarantined
from pgcombine.handoff_replica r
join pgcombine.handoff h on h.destination = r.name
order by r.name
