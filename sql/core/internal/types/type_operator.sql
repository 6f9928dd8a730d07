-- pgcombine_internal.type_operator(type, strategy) → (operator, name)
-- Returns an operator of a type's default operator class: the one that primary keys, group by and order by use,
-- regardless of the search path. Null: the type has none.
--   name      as written between its operands: operator(pg_catalog.=)
--   strategy  the B-tree's number: 1 <, 3 =, 4 >=, 5 >
create or replace function pgcombine_internal.type_operator(type oid, strategy integer, out operator oid, out name text)
language plpgsql stable -- PL/pgSQL keeps the query's plan, which takes longer than the query
as $$
begin
    select p.oid, format('operator(%s.%s)', p.oprnamespace::regnamespace, p.oprname) into operator, name
    from pg_opclass c
    join pg_amop o on o.amopfamily = c.opcfamily and o.amoplefttype = c.opcintype and o.amoprighttype = c.opcintype
                  and o.amopstrategy = strategy
    join pg_operator p on p.oid = o.amopopr
    where c.oid = pgcombine_internal.type_operator_class(type, 'btree')
      and not exists ( -- PostgreSQL finds an operator class for a domain over an enum, but can't use its operators
        select from pg_type d where d.oid = $1 and d.typtype = 'd'
            and (select e.typtype from pg_type e where e.oid = pgcombine_internal.base_type(d.oid)) = 'e');
end
$$;
