-- The tables of a schema that is being removed, without partitions.
select coalesce(array_agg(c.oid::regclass::text), '{}')
from pg_class c
where c.relnamespace = to_regnamespace('pgcombine_removed') and c.relkind in ('r', 'p') and not c.relispartition
