-- pgcombine.table_size
-- One row for each table, with all its partitions, and one row for each growing table that all queues share (see
-- component_table).
--   queue        name of the queue; null for a table that all queues share
--   table        name of the table, without its schema
--   rows         about how many rows it has, by the last vacuum or analyze; null for the log
--   bytes        size of the table, including long values (TOAST)
--   index_bytes  size of its indexes
--   measured_at  when the numbers of this row were measured
create or replace view pgcombine.table_size as
select n.queue, f."table", f.rows, f.bytes, f.index_bytes, n.at as measured_at
from pgcombine_internal.sample('sizes') n
cross join lateral jsonb_to_recordset(n.figures) f ("table" text, rows bigint, bytes bigint, index_bytes bigint)
union all
select null, t.name, greatest(c.reltuples, 0)::bigint, pg_table_size(c.oid), pg_indexes_size(c.oid), clock_timestamp()
from pgcombine.component_table t
join pg_class c on c.oid = to_regclass(format('pgcombine.%I', t.name))
where t.queue is null;
