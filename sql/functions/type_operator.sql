-- pgcombine.type_operator(type, strategy) → oid
-- The operator of a type's default operator class: what primary keys, group by and order by use, whatever the
-- search path. Null: the type has none.
--   strategy  as B-trees number them: 1 <, 3 =, 5 >
create or replace function pgcombine.type_operator(type oid, strategy integer)
returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _type pg_type;
    _generic regtype;
    _operator oid;
begin
    select t.* into strict _type from pg_type t where t.oid = pgcombine.base_type(type_operator.type);
    if _type.typsubscript = 'array_subscript_handler'::regproc and _type.typlen = -1 then
        _generic := 'anyarray';
        if pgcombine.type_operator(_type.typelem, type_operator.strategy) is null then
            return null; -- arrays have operators whatever their elements are, which then fail
        end if;
    else
        _generic := case _type.typtype when 'e' then 'anyenum' when 'r' then 'anyrange'
                                       when 'm' then 'anymultirange' when 'c' then 'record' end;
    end if;
    select o.amopopr into _operator
    from pg_opclass c
    join pg_am m on m.oid = c.opcmethod
    join pg_type t on t.oid = c.opcintype
    join pg_amop o on o.amopfamily = c.opcfamily and o.amoplefttype = c.opcintype and o.amoprighttype = c.opcintype
    where c.opcdefault
      and (m.amname = 'btree' and o.amopstrategy = type_operator.strategy
           or m.amname = 'hash' and o.amopstrategy = 1 and type_operator.strategy = 3)
      and (c.opcintype = _type.oid or c.opcintype = _generic
           or exists (select from pg_cast k where k.castsource = _type.oid and k.casttarget = c.opcintype
                                             and k.castmethod = 'b' and k.castcontext = 'i'))
    order by m.amname, c.opcintype = _type.oid desc, t.typispreferred desc
    limit 1;
    return _operator;
end
$$;
