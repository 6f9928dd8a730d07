-- pgcombine.bloated([queue, held]) → relation
-- Partitions of updates that are worth a vacuum, of one queue or of all: passes walk over what they have deleted until
-- it is vacuumed away, and autovacuum looks once a minute. None that the caller may not vacuum, or that was vacuumed
-- seconds ago; none at all while somebody holds a snapshot for longer than held, since it would be in vain.
create or replace function pgcombine.bloated(queue text default null, held interval default '10 s')
returns setof regclass
language sql stable
as $$
    select i.inhrelid::regclass
    from pgcombine.queue q
    join pg_inherits i on i.inhparent = to_regclass(format('pgcombine.%I', q.queue || '_updates'))
    join pg_class c on c.oid = i.inhrelid
    where (bloated.queue is null or q.queue = bloated.queue)
      and pg_stat_get_dead_tuples(c.oid) > 50000
      and coalesce(pg_stat_get_last_vacuum_time(c.oid), '-infinity') < clock_timestamp() - interval '3 s'
      and (pg_has_role(c.relowner, 'usage')
           or case when current_setting('server_version_num')::integer >= 170000 then has_table_privilege(c.oid, 'maintain') else false end)
      and not exists (select from pgcombine.old_snapshots(bloated.held))
    order by pg_stat_get_dead_tuples(c.oid) desc
$$;
