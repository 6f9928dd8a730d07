-- pgcombine.table_size
-- One row a table of the queues on which the reader has any right, its partitions added up, and one row a table of
-- pgcombine's own that grows (see component_table).
create or replace view pgcombine.table_size with (security_barrier) as
select n.queue, f."table", f.rows, f.bytes, f.index_bytes, n.at as measured_at
from pgcombine_internal.sample('sizes') n
cross join lateral jsonb_to_recordset(n.figures) f ("table" text, rows bigint, bytes bigint, index_bytes bigint)
union all
select null, t.name, greatest(c.reltuples, 0)::bigint, pg_table_size(c.oid), pg_indexes_size(c.oid), clock_timestamp()
from pgcombine.component_table t
join pg_class c on c.oid = to_regclass(format('pgcombine.%I', t.name))
where t.queue is null;
