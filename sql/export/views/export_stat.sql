-- pgcombine.export_stat
-- One row for each export: how many entries wait, how old the oldest is, what was delivered, and the state of the
-- destination.
--   export        name of the export
--   queue         name of the queue
--   exporter      kind of the exporter: python, postgres, files or webhook
--   target        where entries go, without a password
--   state         state of the destination: up, suspect, down or paused
--   reason        why the last attempt failed, or why it is paused; null if the reader must not see it (see
--                 may_see_reason)
--   failures      number of deliveries that have failed in a row
--   retry_at      when the next attempt is due
--   pending       number of changes, entries and keys of a full state that wait (see export_backlog)
--   lag_seconds   age of the oldest change or entry that waits, also in a paused export; 0 if none waits
--   delivered     number of entries delivered or quarantined since the export was created
--   delivered_at  when entries were last delivered or quarantined
--   quarantined   number of quarantined entries: those that the destination refused, and later ones of their keys
--   owner         name of the server that delivers the export; null: this server, as no owner was chosen
--   epoch         grows with each change of owner
create or replace view pgcombine.export_stat as
select e.export, e.queue, e.exporter, e.target, d.state,
       case when pgcombine_internal.has_right(null, 'work') then d.reason end as reason, d.failures, d.retry_at,
       b.entries as pending, b.lag_seconds, c.delivered, c.delivered_at,
       (select count(*) from pgcombine.export_entry q where q.export = e.export and q.error is not null) as quarantined,
       e.owner, e.epoch
from pgcombine.export e
join pgcombine.destination_state d on d.kind = 'export' and d.name = e.export
cross join lateral pgcombine_internal.export_backlog(e.export) b
cross join lateral (
    select coalesce(sum(c.delivered), 0)::bigint as delivered, max(c.delivered_at) as delivered_at
    from pgcombine.export_bucket c where c.export = e.export
) c;
