-- pgcombine_internal.locks_to_drop(queue) → bigint
-- Estimates the number of objects that dropping a queue locks: its tables, those of components, and their dependent
-- objects.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.locks_to_drop(queue text)
returns bigint
language sql stable
as $$
    with tables as (
        select c.oid, c.reltoastrelid
        from (select q.queue from pgcombine_internal.require_queue(locks_to_drop.queue) q) q,
             lateral (values (q.queue || '_updates'), (q.queue || '_values')
                      union all select t.name from pgcombine.component_table t where t.queue = q.queue) n (name),
             pg_partition_tree(format('pgcombine.%I', n.name)::regclass) p
             join pg_class c on c.oid = p.relid
    )
    select count(*) * 3 -- a table, its row type and that type's array type
           + count(*) filter (where t.reltoastrelid <> 0) * 2 -- a TOAST table and its index
           + (select count(*) from pg_index i where i.indrelid in (select oid from tables))
           + (select count(*) from pg_constraint k where k.conrelid in (select oid from tables))
           + (select count(*) from pg_attrdef d where d.adrelid in (select oid from tables))
           + (select count(*) from pg_trigger g where g.tgrelid in (select oid from tables))
           + 150 -- an allowance for the views, the quarantine's tables and catalogs
    from tables t
$$;
