-- pgcombine.handoff
-- One row for each other server: the hints that wait here for it, the deliveries to it, and its state.
--   destination   name of the other server
--   state         state of the destination: up, suspect, down or paused
--   reason        why the last attempt failed, or why it is paused
--   retry_at      when the next attempt is due
--   needs_repair  why hints alone can't make the other server complete; null if they can
--   writes        number of writes that wait here for the other server
--   rows          number of updates in these writes
--   bytes         stored size of their payloads
--   oldest_age    age of the oldest of these writes
--   delivered     number of writes that the other server has taken as new
--   deduplicated  number of writes that it had already at their delivery; these don't count as delivered
--   quarantined   number of updates that it has refused; a write that it refused as a whole counts as one
create or replace view pgcombine.handoff as
select r.name as destination, s.state, s.reason, s.retry_at, r.needs_repair,
       h.writes, h.rows, h.bytes, now() - h.oldest as oldest_age,
       r.delivered + d.delivered as delivered, r.deduplicated + d.deduplicated as deduplicated,
       (select count(*) from pgcombine.handoff_quarantine q where q.destination = r.name) as quarantined
from pgcombine.handoff_replica r
join pgcombine.destination s on s.kind = 'server' and s.name = r.name
cross join lateral (
    select count(*) as writes, coalesce(sum(i.updates), 0) as rows,
        coalesce(sum(pg_column_size(i.payload)), 0) as bytes,
           min(i.since) as oldest
    from pgcombine.handoff_hint i where i.destination = r.name
) h
cross join lateral (
    select coalesce(sum(y.delivered), 0)::bigint as delivered, coalesce(sum(y.deduplicated), 0)::bigint as deduplicated
    from pgcombine.handoff_delivery y where y.destination = r.name
) d;
