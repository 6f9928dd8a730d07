-- The tables in the schema pgcombine that have autovacuum_enabled=off, or false, no or 0. The tables
-- spark_stage_<number> are left out, since pgcombine makes them without autovacuum.
select c.oid::regclass::text as "table"
from pg_class c
where c.relnamespace = 'pgcombine'::regnamespace and c.relkind = 'r' and c.relname !~ '^spark_stage_'
  and exists (select from unnest(c.reloptions) o where o ~ '^autovacuum_enabled=(off|false|no|0)$')
order by 1
