-- pgcombine.load_stat
-- One row a load from Spark under way, for the role that makes it and for roles that monitor. The columns are in
-- pgcombine/docs/monitoring.md.
-- It is a security barrier, so that no function of the reader's sees rows that the reader may not see.
create or replace view pgcombine.load_stat with (security_barrier) as
select l.number as load, l.queue, l.run_id, l.kind, l.role, l.started_at, l.seen_at, l.ended_at is not null as ended,
       coalesce(pg_stat_get_live_tuples(s.stage) + coalesce((select sum(c.tuples_processed) from pg_stat_progress_copy c
           where c.relid = s.stage), 0), 0)::bigint as rows,
       coalesce(pg_relation_size(s.stage), 0) as bytes
from pgcombine.spark_load l
cross join lateral (select to_regclass('pgcombine.spark_stage_' || l.number)::oid as stage) s
where pgcombine_internal.acts_for(l.role) or pgcombine_internal.has_right(l.queue, 'monitor');
