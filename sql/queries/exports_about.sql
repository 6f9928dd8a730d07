-- The same columns as the query exports, but pending is an estimate (see export_stat). Parameter: the name of an
-- export; null: all.
select s.export, s.queue, s.exporter, e.target, s.state, d.reason, s.retry_at, s.pending, s.lag_seconds, s.delivered,
    s.delivered_at,
       s.quarantined, s.owner, e.epoch
from pgcombine.export_stat s
join pgcombine.export e using (export)
join pgcombine.destination_state d on d.kind = 'export' and d.name = s.export
where s.export = coalesce(%s, s.export)
order by s.export
