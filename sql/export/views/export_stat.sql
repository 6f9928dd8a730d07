-- pgcombine.export_stat
-- One row for each export that the reader may deliver, or on whose queue the reader has any right: about how many
-- entries wait, how old the oldest is, what was delivered, and the state of the destination. export_status counts
-- exactly. The view is a security barrier, so that a reader's function can't see rows that the reader must not see.
--   export        name of the export
--   queue         name of the queue
--   exporter      kind of the exporter: python, postgres, files or webhook
--   target        where entries go, without a password
--   state         state of the destination: up, suspect, down or paused
--   reason        why the last attempt failed, or why it is paused; null if the reader must not see it (see
--                 may_see_reason)
--   failures      number of deliveries that have failed in a row
--   retry_at      when the next attempt is due
--   pending       about how many entries wait, by the server's statistics, which are some seconds old; 0 is exact
--   lag_seconds   about the age of the oldest entry (see export_backlog), also in a paused export; 0 if none waits
--   delivered     number of entries delivered or quarantined since the export was created
--   delivered_at  when entries were last delivered or quarantined
--   quarantined   number of quarantined entries, which the destination refused
--   owner         name of the server that delivers the export; null: this server, as no owner was chosen
--   epoch         grows with each change of owner
create or replace view pgcombine.export_stat as
select e.export, e.queue, e.exporter, e.target, d.state,
       case when pgcombine_internal.has_right(null, 'work') then d.reason end as reason, d.failures, d.retry_at,
       b.entries as pending,
       b.lag_seconds, c.delivered, c.delivered_at,
       (select count(*) from pgcombine.export_quarantine q where q.export = e.export) as quarantined, e.owner,
       e.epoch
from pgcombine.export e
join pgcombine.destination_state d on d.kind = 'export' and d.name = e.export
cross join lateral pgcombine_internal.export_backlog(e.export, exact => false) b
cross join lateral (
    select coalesce(sum(c.delivered), 0)::bigint as delivered, max(c.delivered_at) as delivered_at
    from pgcombine.export_bucket c where c.export = e.export
) c;
