-- pgcombine_internal.slept_on() → setof text
-- Lists the queues on which a living worker sleeps: nothing is pending there but in buckets whose last pass failed. A
-- worker that sleeps has closed the queue's gate and has then found nothing to do, and each later enqueue wakes it (see
-- asleep). The worker lives if its session did something in the last five seconds: workers look each second even if
-- nobody wakes them.
-- A queue isn't listed if the caller may not see the worker's session (pg_read_all_stats), or if the worker doesn't
-- sleep on its gate.
create or replace function pgcombine_internal.slept_on()
returns setof text
language sql stable
as $$
    select q.queue
    from pg_locks k
    join pg_stat_activity a on a.pid = k.pid
    join pgcombine.queue q on k.objid = hashtext(q.queue)::oid
    where k.locktype = 'advisory' and k.classid = hashtext('pgcombine.gate')::oid and k.objsubid = 2
      and k.mode = 'ExclusiveLock' and k.granted and k.database = (select d.oid from pg_database d where d.datname = current_database())
      and a.application_name like 'pgcombine worker %' and a.state_change > clock_timestamp() - interval '5 seconds'
$$;
