-- Lists segments of a queue's log that are larger than 128 kB and have dead rows, if the role has the rights of the
-- segment's owner. After a vacuum, a segment is left out for half a second, and a tenth of a second more for each
-- megabyte, since an old snapshot may keep its dead rows. Parameter: the queue.
select c.oid::regclass::text
from pg_partition_tree(to_regclass(format('pgcombine.%%I', %s::text || '_updates'))) p
join pg_class c on c.oid = p.relid and p.isleaf and pg_has_role(c.relowner, 'usage')
where pg_stat_get_dead_tuples(c.oid) > 0 and pg_relation_size(c.oid) > 128 * 1024
  and coalesce(greatest(pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid)), '-infinity')
      < clock_timestamp() - make_interval(secs => 0.5 + pg_relation_size(c.oid) / 1e7)
