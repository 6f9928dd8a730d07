-- pgcombine.locks_to_drop(queue) → bigint
-- How many objects are locked when the queue is dropped: its tables, those of its exports, and what belongs to them.
-- Errors: PC001 unknown queue.
create or replace function pgcombine.locks_to_drop(queue text)
returns bigint
language sql stable
as $$
    with tables as (
        select c.oid, c.reltoastrelid
        from (select q.queue from pgcombine.require_queue(locks_to_drop.queue) q) q,
             lateral (values (q.queue || '_updates'), (q.queue || '_values')
                      union all select e.export || '_exports' from pgcombine.export e where e.queue = q.queue) n (name),
             pg_partition_tree(format('pgcombine.%I', n.name)::regclass) p
             join pg_class c on c.oid = p.relid
    )
    select count(*) * 3 -- with the types of its rows and of arrays of them
           + count(*) filter (where t.reltoastrelid <> 0) * 2 -- with its index
           + (select count(*) from pg_index i where i.indrelid in (select oid from tables))
           + (select count(*) from pg_constraint k where k.conrelid in (select oid from tables))
           + (select count(*) from pg_attrdef d where d.adrelid in (select oid from tables))
           + (select count(*) from pg_trigger g where g.tgrelid in (select oid from tables))
           + 150 -- the views, the quarantine and its keys, catalogs
    from tables t
$$;
