-- The buckets that a worker should pass over now; whether a pass may enqueue to another queue, by an observer or a
-- trigger on the values; whether the log is large. Parameter: the queue; null: all.
select d.queue, d.bucket,
       exists (select from pgcombine.observer o where o.queue = d.queue)
           or exists (select from pg_trigger t
                      where t.tgrelid = to_regclass(format('pgcombine.%%I', d.queue || '_values')) and not t.tgisinternal
                        and t.tgfoid <> 'pgcombine_internal.refuse_values'::regproc),
       (select sum(pg_relation_size(p.relid)) > 8 * 1024 * 1024
        from pg_partition_tree(to_regclass(format('pgcombine.%%I', d.queue || '_updates'))) p where p.isleaf)
from pgcombine_internal.due(%s) d
