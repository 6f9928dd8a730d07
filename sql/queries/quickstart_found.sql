-- What there is of pgcombine quickstart. Returns (left_over, taken, runs).
--   left_over  whether a run that was killed has left its objects: its schema has the comment of quickstart_make
--   taken      which name of quickstart an object has that quickstart didn't make; null: none
--   runs       the process id of another run's session; null: there is none
select coalesce(s.made, false) as left_over,
       case when not s.made then 'the schema pgcombine_quickstart'
            when s.made is null then (select 'the queue ' || min(q.queue) from pgcombine.queue q
                where q.queue in ('quickstart_visits', 'quickstart_spend')) end as taken,
       (select min(a.pid) from pg_stat_activity a
        where a.application_name = 'pgcombine quickstart' and a.datname = current_database()
          and a.pid <> pg_backend_pid()) as runs
from (select) one
left join (
    select coalesce(obj_description(n.oid, 'pg_namespace') = 'made by pgcombine quickstart', false) as made
    from pg_namespace n where n.nspname = 'pgcombine_quickstart'
) s on true
