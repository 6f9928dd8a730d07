-- pgcombine.hint_stat
-- One row for each other server: about how many writes wait here for that server, and since when. The view counts
-- these writes if there are fewer than 200. From 200 on, it estimates their number from PostgreSQL's statistics; the
-- view handoff counts all. Only roles that monitor or replay see rows.
-- The view is a security barrier, so that a reader's function can't see rows that the reader must not see.
--   destination     name of the other server
--   state           state of the destination: up, suspect, down or paused
--   reason          why the last attempt failed, or why it is paused
--   needs_repair    why hints alone can't make the other server complete; null if they can
--   writes          number of writes that wait here for it; an estimate from 200 on
--   updates         number of updates in these writes; an estimate from 200 writes on
--   oldest          when the oldest of these writes was stored; null if none waits
--   oldest_seconds  age of the oldest; 0 if none waits
create or replace view pgcombine.hint_stat as
select r.name as destination, d.state, d.reason, r.needs_repair, w.writes::bigint as writes,
       (h.updates * w.writes / greatest(h.writes, 1))::bigint as updates, h.oldest,
       greatest(0, extract(epoch from clock_timestamp() - h.oldest))::double precision as oldest_seconds
from pgcombine.handoff_replica r
join pgcombine.destination_state d on d.kind = 'server' and d.name = r.name
cross join lateral (
    select count(*) as writes, coalesce(sum(i.updates), 0)::double precision as updates, min(i.since) as oldest
    from (select t.updates, t.since from pgcombine.handoff_hint t where t.destination = r.name order by t.token
        limit 200) i
) h
cross join (
    select pg_stat_get_live_tuples('pgcombine.handoff_hint'::regclass)::double precision as hints, sum(a.rows) as rows
        from pgcombine.handoff_replica a
) n
cross join lateral (
    select case when h.writes < 200 then h.writes
        else greatest(h.writes, round(n.hints * r.rows / greatest(n.rows, 1))) end as writes
) w;
