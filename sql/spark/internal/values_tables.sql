-- pgcombine_internal.values_tables(queue) → (relation, condition)
-- Returns a relation and a condition for each physical partition of a queue's values, for reading them in parallel.
-- A reader selects from the relation where the condition is true.
-- If the caller may read a partition, the relation is that partition. The condition is true, or raises PC013 if
-- rebucket has replaced the partition since. If rebucket has reduced the number of partitions, the relation may be
-- unknown (42P01). If the caller may read only <queue>_values, the relation is <queue>_values, and the condition
-- selects a partition's rows by PostgreSQL's hash partitioning. Each query then scans all rows.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.values_tables(queue text, out relation text, out condition text)
returns setof record
language sql stable
as $$
    select case when r.may then t.name else v.name end,
           case when r.may then format('pgcombine_internal.planned_table(%L, %s, %s)', q.queue, p,
               t.name::regclass::oid)
               else format('satisfies_hash_partition(%s::oid, %s, %s, %s)', v.name::regclass::oid, q.partitions, p,
                   pgcombine_internal.column_list(q.queue, 'key')) end
    from pgcombine_internal.require_queue(values_tables.queue) q
    cross join generate_series(0, q.partitions - 1) p
    cross join lateral (select pgcombine_internal.values_table(q.queue, p) as name) t
    cross join lateral (select format('pgcombine.%I', q.queue || '_values') as name) v
    cross join lateral (select has_any_column_privilege(t.name::regclass, 'select') as may) r
$$;
