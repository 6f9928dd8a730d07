-- pgcombine.worker
-- One row a worker that is connected to this database, visible to every role.
--   worker  host:process; the worker's sessions have it in application_name
--   role    the role that the worker runs as
--   since   when the worker started
--   queues  those that it works on; null: all (see queries/announce_worker.sql)
--   state   working, waiting (for a lock), or idle
--   pids    its sessions
-- Behind a pooler in transaction mode a worker is visible only at moments, without since and queues.
create or replace view pgcombine.worker as
select substr(s.application_name, length('pgcombine worker ') + 1) as worker, s.usename as role,
       to_timestamp(min(l.since)) as since, min(l.queues) as queues,
       case when bool_or(l.waits) then 'waiting' when bool_or(l.works) then 'working' else 'idle' end as state,
       array_agg(s.pid order by s.pid) as pids
from pg_stat_activity s
left join (
    select k.pid, bool_or(not k.granted) as waits, bool_or(k.locktype = 'virtualxid') as works,
           min(k.objid::bigint) filter (where k.classid = hashtext('pgcombine.worker')::oid) as since,
           array_remove(array_agg(q.queue
               order by q.queue) filter (where k.classid = hashtext('pgcombine.worker.queue')::oid), null) as queues
    from pg_locks k
    left join pgcombine.queue q on k.classid = hashtext('pgcombine.worker.queue')::oid
        and k.objid = hashtext(q.queue)::oid
    group by k.pid
) l using (pid)
where s.datname = current_database() and s.application_name like 'pgcombine worker %'
group by s.application_name, s.usename;
