-- pgcombine.export_stat
-- One row an export that the reader may deliver, or on whose queue it has any right: about how many entries wait, how
-- old the oldest is, what was delivered, and the state of the destination. export_status counts exactly. The columns
-- are in pgcombine/docs/monitoring.md.
-- It is a security barrier, so that no function of the reader's sees rows that the reader may not see.
create or replace view pgcombine.export_stat with (security_barrier) as
select e.export, e.queue, e.exporter, d.state, d.failures, d.retry_at, b.entries as pending,
       case when d.state = 'paused' then 0 else b.lag_seconds end as lag_seconds, c.delivered, c.delivered_at,
       (select count(*) from pgcombine.export_quarantine q where q.export = e.export) as quarantined, e.owner
from pgcombine.export e
join pgcombine.destination_state d on d.kind = 'export' and d.name = e.export
cross join lateral pgcombine_internal.export_backlog(e.export, exact => false) b
cross join lateral (
    select coalesce(sum(c.delivered), 0)::bigint as delivered, max(c.delivered_at) as delivered_at
    from pgcombine.export_bucket c where c.export = e.export
) c
where pgcombine_internal.has_right(e.queue, 'use') or pgcombine_internal.has_right(e.export, 'export');
