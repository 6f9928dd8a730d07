-- Of the given queues, those whose log has a segment of more than a number of bytes; and if it is 0, those with tokens
-- that are shared by all roles (see reclaim). Parameters: the names of queues, and twice the number.
select q.queue
from pgcombine.queue q
where q.queue = any (%s)
  and (exists (select from pg_partition_tree(to_regclass(format('pgcombine.%%I', q.queue || '_updates'))) p
               where p.isleaf and pg_relation_size(p.relid) > 0 and pg_table_size(p.relid) > %s)
       or %s = 0 and exists (select from pgcombine.token t where t.queue = q.queue and t.role = ''))
