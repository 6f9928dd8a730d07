-- pgcombine.export_status: one row an export that the reader may deliver, or whose queue it may use in any way: how many entries wait and since when, how many were delivered and how
-- many refused, the state of its destination, and which of several servers owns it (null: there is but one).
-- A security barrier: no function of the reader's sees a row that the reader may not see.
create or replace view pgcombine.export_status with (security_barrier) as
select e.export, e.queue, e.exporter, e.target, d.state, d.reason, d.retry_at, b.entries as pending, b.lag_seconds,
       (select sum(c.delivered) from pgcombine.export_bucket c where c.export = e.export)::bigint as delivered,
       (select max(c.delivered_at) from pgcombine.export_bucket c where c.export = e.export) as delivered_at,
       (select count(*) from pgcombine.export_quarantine q where q.export = e.export) as quarantined,
       e.owner, e.epoch
from pgcombine.export e
join pgcombine.destination_state d on d.kind = 'export' and d.name = e.export
cross join lateral pgcombine.export_backlog(e.export) b
where pgcombine.has_right(e.queue, 'use') or pgcombine.has_right(e.export, 'deliver');
