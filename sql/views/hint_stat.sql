-- pgcombine.hint_stat
-- One row for each other server: about how many writes wait here for it, and the age of the oldest. It reads two hundred
-- hints of a server at most; the view handoff counts them all. Only roles that monitor or replay see rows. The columns
-- are in pgcombine/docs/monitoring.md.
create or replace view pgcombine.hint_stat with (security_barrier) as
select r.name as destination, d.state,
       case when h.writes < 200 then h.writes else greatest(h.writes, n.live * r.rows / greatest(n.rows, r.rows, 1)) end::bigint as writes,
       h.updates * case when h.writes < 200 then 1 else greatest(h.writes, n.live * r.rows / greatest(n.rows, r.rows, 1)) / h.writes end as updates,
       h.oldest, greatest(0, extract(epoch from clock_timestamp() - h.oldest))::double precision as oldest_seconds
from pgcombine.handoff_replica r
join pgcombine.destination_state d on d.kind = 'server' and d.name = r.name
cross join lateral (
    select count(*) as writes, coalesce(sum(i.updates), 0)::double precision as updates, min(i.since) as oldest
    from (select t.updates, t.since from pgcombine.handoff_hint t where t.destination = r.name order by t.token limit 200) i
) h
cross join (select pg_stat_get_live_tuples('pgcombine.handoff_hint'::regclass)::double precision as live, sum(a.rows) as rows from pgcombine.handoff_replica a) n
where has_column_privilege(current_user, 'pgcombine.every_queue', 'monitor', 'select') or has_table_privilege(current_user, 'pgcombine.handoff_hint', 'delete');
