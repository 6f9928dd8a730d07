-- Up to 32 of the given tables and their partitions, as a list for drop table; null: none is left. A partitioned table
-- comes when its partitions are gone.
--   1  names of tables; those that don't exist count for nothing
select string_agg(t.name, ', ')
from (
    select p.relid::regclass::text as name
    from unnest(%s::text[]) n
    cross join lateral pg_partition_tree(to_regclass(n)) p
    where not exists (select from pg_inherits i where i.inhparent = p.relid)
    order by p.relid
    limit 32
) t
