-- The exports. Parameter: the name of an export; null: all.
select export, queue, exporter, target, state, reason, retry_at, pending, lag_seconds, delivered, delivered_at,
       quarantined, owner, epoch
from pgcombine.export_stat
where export = coalesce(%s, export)
order by export
