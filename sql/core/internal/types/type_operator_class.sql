-- pgcombine_internal.type_operator_class(type, method) → oid
-- Returns the default operator class of a type for an index method (btree, hash); null: there is none.
create or replace function pgcombine_internal.type_operator_class(type oid, method text)
returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _type pg_type;
    _generic regtype;
    _class oid;
begin
    select t.* into strict _type from pg_type t where t.oid = pgcombine_internal.base_type(type);
    if _type.typsubscript = 'array_subscript_handler'::regproc and _type.typlen = -1 then
        _generic := 'anyarray';
        if pgcombine_internal.type_operator_class(_type.typelem, method) is null then
            return null; -- array types have operators even if their element type has none, but these fail
        end if;
    else
        _generic := case _type.typtype when 'e' then 'anyenum' when 'r' then 'anyrange'
                                       when 'm' then 'anymultirange' when 'c' then 'record' end;
    end if;
    select c.oid into _class
    from pg_opclass c
    join pg_am m on m.oid = c.opcmethod
    join pg_type t on t.oid = c.opcintype
    where c.opcdefault and m.amname = method
      and (c.opcintype = _type.oid or c.opcintype = _generic
           or exists (select from pg_cast k where k.castsource = _type.oid and k.casttarget = c.opcintype
                                             and k.castmethod = 'b' and k.castcontext = 'i'))
    order by c.opcintype = _type.oid desc, t.typispreferred desc
    limit 1;
    return _class;
end
$$;
