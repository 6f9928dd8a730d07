-- The exports. Parameter: the name of an export; null: all.
--   {view}  export_status, or export_stat, where pending is an estimate
select export, queue, exporter, target, state, reason, retry_at, pending, lag_seconds, delivered, delivered_at,
       quarantined, owner, epoch
from pgcombine.{view}
where export = coalesce(%s, export)
order by export
