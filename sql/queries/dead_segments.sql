-- Lists segments of the log that are larger than 128 kB and have dead rows, if the role has the rights of the segment's
-- owner. After a vacuum, a segment is left out for half a second, and a tenth of a
-- second more for each megabyte, since an old snapshot may keep its dead rows.
-- Parameter: the queue; null: all.
select c.oid::regclass::text
from pgcombine.queue q
join pg_class c on c.relnamespace = 'pgcombine'::regnamespace and c.relkind = 'r'
               and c.relname ~ ('^' || q.queue || '_updates_b\d+_s\d+$') and pg_has_role(c.relowner, 'usage')
where q.queue = coalesce(%s, q.queue)
  and pg_stat_get_dead_tuples(c.oid) > 0 and pg_relation_size(c.oid) > 128 * 1024
  and coalesce(greatest(pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid)), '-infinity')
      < clock_timestamp() - make_interval(secs => 0.5 + pg_relation_size(c.oid) / 1e7)
