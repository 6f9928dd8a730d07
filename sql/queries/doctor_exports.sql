-- The exports, with figures from export_stat, and with the reason of the last failure or of the pause.
select s.export, s.queue, s.state, s.failures, d.reason, s.pending, s.lag_seconds, s.quarantined
from pgcombine.export_stat s
join pgcombine.destination_state d on d.kind = 'export' and d.name = s.export
order by s.export
