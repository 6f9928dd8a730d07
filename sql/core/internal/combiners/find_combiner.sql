-- pgcombine_internal.find_combiner(written, name, type) → text
-- Returns the combiner that a column definition names: a built-in one, a function of two arguments or an aggregate of
-- one. Functions and aggregates must take the column's type, perhaps after a cast that needs no conversion, and return
-- the type of the column or of their arguments.
-- The name of a function or an aggregate is looked up on the caller's search path. The result has the qualified name.
--   written     the name as it is in the definition, quoted or qualified where needed
--   name, type  the column's name and type
-- Tables written: pgcombine.combiner, at the first use of a function or an aggregate.
-- Errors: PC003 no combiner has the written name and takes the type, or the combiner's result has another type.
create or replace function pgcombine_internal.find_combiner(written text, name text, type text)
returns text
language plpgsql
as $$
declare
    _type constant oid := type::regtype;
    _base constant oid := pgcombine_internal.base_type(_type);
    _argument text;
    _base_name constant text := pgcombine_internal.type_name(_base, -1);
    _found pg_proc;
    _name text;
    _combiner text;
begin
    select c.combiner into _combiner from pgcombine.combiner c
    where c.function is null and array[c.combiner] = parse_ident(written);
    if found then
        return _combiner;
    end if;

    -- Candidates by type: the column's type, its base type, the preferred types to which PostgreSQL casts it without a
    -- conversion (varchar to text), then polymorphic types. For each type an aggregate comes before a function.
    for _argument in
        select a.argument
        from unnest(array[_type, _base] || array(
                 select k.casttarget from pg_cast k join pg_type t on t.oid = k.casttarget
                 where k.castsource = _base and k.castmethod = 'b' and k.castcontext = 'i' and t.typispreferred)
             || array['anyelement', 'anycompatible']::regtype[]::oid[]
             || (select case when b.typcategory = 'A' then array['anyarray', 'anycompatiblearray']
                             else array['anynonarray', 'anycompatiblenonarray'] end
                     || case b.typtype when 'e' then array['anyenum']
                         when 'r' then array['anyrange', 'anycompatiblerange']
                                       when 'm' then array['anymultirange', 'anycompatiblemultirange'] end
                 from pg_type b where b.oid = _base)::regtype[]::oid[]
             ) with ordinality as t(oid, place)
        cross join lateral pgcombine_internal.type_name(t.oid, -1) as n(type)
        cross join lateral (values (1, n.type), (2, n.type || ', ' || n.type)) as a(arguments, argument)
        order by t.place, a.arguments
    loop
        begin
            select p.* into _found
            from pg_proc p
            where p.oid = to_regprocedure(format('%s(%s)', written, _argument))
              and (p.prokind = 'f' and p.pronargs = 2
                   or p.prokind = 'a' and p.pronargs = 1
                       and (select a.aggkind from pg_aggregate a where a.aggfnoid = p.oid) = 'n');
        exception when undefined_object or invalid_schema_name or invalid_name or syntax_error
            or invalid_parameter_value then
            continue;
        end;
        continue when not found;
        _name := format('%s.%I', _found.pronamespace::regnamespace, _found.proname);
        begin
            execute case _found.prokind
                when 'a' then format('select %s(v) from (select null::%s) as probe(v)', _name, _base_name)
                else format('select %s(null::%s, null::%s)', _name, _base_name, _base_name) end;
        exception when undefined_function or datatype_mismatch or ambiguous_function or indeterminate_datatype then
            continue; -- this candidate's polymorphic arguments don't accept the type
        when others then
            null; -- the function takes the type; its error for the null arguments doesn't matter
        end;
        perform pgcombine_internal.require(_found.prorettype = any (_found.proargtypes::oid[] || _type || _base),
            'PC003',
            format('combiner %s(%s) of column "%s" returns %s, not %s', written, _argument, name,
                pgcombine_internal.type_name(_found.prorettype, -1), type),
            'its results are combined again, so its result and its arguments must have the same type');
        return pgcombine_internal.register_combiner(_found.oid,
            case when _found.proargtypes[0] in (_type, _base) or not exists (
                select from pg_type t where t.oid = _found.proargtypes[0] and t.typtype = 'p')
            then _found.proargtypes[0] else _base end);
    end loop;

    raise exception 'unknown combiner "%" for type "%" of column "%"', written, type, name
        using errcode = 'PC003', hint = format('give one of %s; or a function f(%s, %s) or an aggregate of that type',
            (select string_agg(c.combiner, ', ' order by c.combiner) from pgcombine.combiner c
                where c.function is null), type, type);
end
$$;
