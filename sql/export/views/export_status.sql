-- pgcombine.export_status
-- One row an export that the reader may deliver, or on whose queue it has any right: waiting entries and their age,
-- delivered and refused entries, the state of the destination, and the server that owns the export (null: no other
-- server has it).
-- It is a security barrier, so that no function of the reader's sees rows that the reader may not see.
create or replace view pgcombine.export_status with (security_barrier) as
select e.export, e.queue, e.exporter, e.target, d.state,
       case when pgcombine_internal.may_see_reason(d.kind, d.name) then d.reason end as reason, d.retry_at,
       b.entries as pending, b.lag_seconds,
       (select sum(c.delivered) from pgcombine.export_bucket c where c.export = e.export)::bigint as delivered,
       (select max(c.delivered_at) from pgcombine.export_bucket c where c.export = e.export) as delivered_at,
       (select count(*) from pgcombine.export_quarantine q where q.export = e.export) as quarantined,
       e.owner, e.epoch
from pgcombine.export e
join pgcombine.destination_state d on d.kind = 'export' and d.name = e.export
cross join lateral pgcombine_internal.export_backlog(e.export) b
where pgcombine_internal.has_right(e.queue, 'use') or pgcombine_internal.has_right(e.export, 'export');
