-- Up to 32 tables of a schema that is being removed, as a list for drop table; null: none is left. Partitions come
-- first.
select string_agg(t.name, ', ')
from (
    select c.oid::regclass::text as name
    from pg_class c
    where c.relnamespace = to_regnamespace('pgcombine_removed') and c.relkind in ('r', 'p')
    order by not c.relispartition, c.relkind = 'p', c.oid
    limit 32
) t
