-- pgcombine.worker
-- One row for each worker that is connected to this database. Every role sees all rows.
-- Behind a pooler in transaction mode a worker is visible only at times, and its columns since and queues are null.
-- They are null, too, if another session had the locks that announce them (see queries/announce_worker.sql), or while
-- the worker's poller has no connection.
--   worker  host:process, also in the application_name of the worker's sessions
--   role    role that the worker runs as
--   since   when the worker started
--   queues  names of the queues that it works on; null for all
--   state   connecting (it lacks a session: it has just started, or waits for a connection), waiting (for a lock),
--           working or idle
--   pids    process ids of its sessions at the server
create or replace view pgcombine.worker as
select substr(s.application_name, length('pgcombine worker ') + 1) as worker, s.usename as role,
       to_timestamp(min(l.since)) as since, min(l.queues) filter (where l.since is not null) as queues,
       case when count(*) < min(l.sessions) then 'connecting' when bool_or(l.waits) then 'waiting'
            when bool_or(l.works) then 'working' else 'idle' end as state,
       array_agg(s.pid order by s.pid) as pids
from pg_stat_activity s
left join (
    select k.pid, bool_or(not k.granted) as waits, bool_or(k.locktype = 'virtualxid') as works,
           min(k.objid::bigint) filter (where k.classid = hashtext('pgcombine.worker')::oid) as since,
           min(k.objid::bigint) filter (where k.classid = hashtext('pgcombine.worker.sessions')::oid) as sessions,
           array_remove(array_agg(q.queue
               order by q.queue) filter (where k.classid = hashtext('pgcombine.worker.queue')::oid), null) as queues
    from pg_locks k
    left join pgcombine.queue q on k.classid = hashtext('pgcombine.worker.queue')::oid
        and k.objid = hashtext(q.queue)::oid
    group by k.pid
) l using (pid)
where s.datname = current_database() and s.application_name like 'pgcombine worker %'
group by s.application_name, s.usename;
