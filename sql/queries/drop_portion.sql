-- Up to 32 leaf tables of the given tables, as a list for drop table; null: none is left.
--   1  names of tables; those that don't exist count for nothing
select string_agg(t.name, ', ')
from (
    select p.relid::regclass::text as name
    from unnest(%s::text[]) n
    cross join lateral pg_partition_tree(to_regclass(n)) p
    where p.isleaf
    order by p.relid
    limit 32
) t
