-- The buckets over which a worker should run a pass now (see the function due). The third column is whether passes over
-- the queue may enqueue to another queue: the queue has an observer, or its values have a trigger besides
-- refuse_values. The fourth is whether the queue's log is larger than 8 MB; false if the parameter is null.
-- Parameter: the queue; null: all.
select d.queue, d.bucket,
       exists (select from pgcombine.observer o where o.queue = d.queue)
           or exists (select from pg_trigger t
                      where t.tgrelid = to_regclass(format('pgcombine.%%I', d.queue || '_values'))
                        and not t.tgisinternal and t.tgfoid <> 'pgcombine_internal.refuse_values'::regproc),
       a.queue is not null and (
           select sum(pg_relation_size(p.relid)) > 8 * 1024 * 1024
           from pg_partition_tree(to_regclass(format('pgcombine.%%I', a.queue || '_updates'))) p where p.isleaf)
from (select %s::text as queue) a
cross join lateral pgcombine_internal.due(a.queue) d
