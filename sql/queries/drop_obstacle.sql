-- A view, function or foreign key that depends on one of the given tables or on a partition of them. Because of it a
-- later drop table would fail.
--   1  names of tables
select pg_describe_object(d.classid, d.objid, 0)
from unnest(%s::text[]) n
cross join lateral pg_partition_tree(to_regclass(n)) p
join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = p.relid
where d.classid in ('pg_rewrite'::regclass, 'pg_proc'::regclass)
   or d.classid = 'pg_constraint'::regclass
      and exists (select from pg_constraint k where k.oid = d.objid and k.confrelid = p.relid)
limit 1
