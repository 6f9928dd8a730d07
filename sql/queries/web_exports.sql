-- The exports, and whether the role works, so that it may resume them.
select s.export, s.queue, s.exporter, s.state, s.failures, s.retry_at, s.pending, s.lag_seconds, s.delivered,
    s.delivered_at,
       s.quarantined, s.owner, pgcombine_internal.has_right(null, 'work') as operable
from pgcombine.export_stat s
order by s.export
