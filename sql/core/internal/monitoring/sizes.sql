-- pgcombine_internal.sizes(queue) → jsonb
-- Returns the sizes of a queue's tables, for the function sample: an array of objects with table, rows (as of the last
-- vacuum or analyze), bytes (with TOAST) and index_bytes. The object of the log has segments, filled, waiting and
-- waiting_bytes in place of rows.
-- A segment waits to be reclaimed if no update on its last pages is pending, and if its round is over or the segment
-- has more than 8 MB.
create or replace function pgcombine_internal.sizes(queue text)
returns jsonb
language sql
as $$
    with log as (
        select pg_table_size(s.name::regclass) as bytes, s.name, s.name::regclass as relation, p.partition,
               (s.place - 1) & (q.segments - 1) <> txid_snapshot_xmax(txid_current_snapshot())
                   >> q.segment_bits & (q.segments - 1) as over
        from pgcombine.queue q
        cross join generate_series(0, q.partitions - 1) p (partition)
        cross join lateral unnest(pgcombine_internal.segment_tables(q.queue,
            p.partition)) with ordinality s (name, place)
        where q.queue = sizes.queue and to_regclass(s.name) is not null
    ), sized as (
        select l.bytes, pg_relation_size(l.relation) > 0 as filled,
               case when pg_relation_size(l.relation) > 0 and l.over or l.bytes > 8 * 1024 * 1024
                    then not pgcombine_internal.needed(sizes.queue, l.name, l.partition, txid_current_snapshot(),
                        9223372036854775807, false)
                    else false end as waits
        from log l
    ), others as (
        select n.name, coalesce(p.relid, to_regclass(format('pgcombine.%I', n.name))) as relid
        from (select sizes.queue || e from unnest(array['_values', '_quarantine', '_quarantine_keys']) e
              union all
              select t.name from pgcombine.component_table t where t.queue = sizes.queue) n (name)
        left join lateral pg_partition_tree(to_regclass(format('pgcombine.%I', n.name))) p on p.isleaf
    )
    select (
        select jsonb_agg(jsonb_build_object('table', t.name, 'rows', t.rows, 'bytes', t.bytes,
            'index_bytes', t.index_bytes))
        from (select o.name, sum(greatest(c.reltuples, 0))::bigint as rows, sum(pg_table_size(o.relid)) as bytes,
            sum(pg_indexes_size(o.relid)) as index_bytes
              from others o join pg_class c on c.oid = o.relid group by o.name) t
    ) || (
        select jsonb_build_object('table', sizes.queue || '_updates', 'bytes', coalesce(sum(s.bytes), 0),
            'index_bytes', 0, 'segments', count(*),
            'filled', count(*) filter (where s.filled), 'waiting', count(*) filter (where s.waits),
            'waiting_bytes', coalesce(sum(s.bytes) filter (where s.waits), 0))
        from sized s)
$$;
