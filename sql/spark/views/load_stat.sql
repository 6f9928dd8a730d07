-- pgcombine.load_stat
-- One row for each load from Spark that isn't removed yet, for the role that makes it, its members, and roles that
-- monitor.
-- The view is a security barrier: a function in the reader's condition can't see rows that the reader may not see.
--   load        number of the load; its rows wait in spark_stage_<number>
--   queue       name of the queue
--   run_id      name of the run
--   kind        stage or values
--   role        role that makes the load
--   started_at  when the load began
--   seen_at     when a session last joined the load, to the minute, or prepared its end
--   ended       whether the load has ended, and only its table is still to be removed
--   rows        about how many rows were written; the statistics may be some seconds old
--   bytes       size of the table with the load's rows
create or replace view pgcombine.load_stat as
select l.number as load, l.queue, l.run_id, l.kind, l.role, l.started_at, l.seen_at, l.ended_at is not null as ended,
       coalesce(pg_stat_get_live_tuples(s.stage) + coalesce((select sum(c.tuples_processed) from pg_stat_progress_copy c
           where c.relid = s.stage), 0), 0)::bigint as rows,
       coalesce(pg_relation_size(s.stage), 0) as bytes
from pgcombine.spark_load l
cross join lateral (select to_regclass('pgcombine.spark_stage_' || l.number)::oid as stage) s;
