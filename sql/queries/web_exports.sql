-- The exports, and whether the role may operate each.
select s.export, s.queue, s.exporter, s.state, s.failures, s.retry_at, s.pending, s.lag_seconds, s.delivered,
    s.delivered_at,
       s.quarantined, s.owner, pgcombine_internal.may_operate_export(s.export) as operable
from pgcombine.export_stat s
order by s.export
