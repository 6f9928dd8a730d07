-- The exports, with figures from export_stat.
select export, queue, state, failures, reason, pending, lag_seconds, quarantined
from pgcombine.export_stat
order by export
