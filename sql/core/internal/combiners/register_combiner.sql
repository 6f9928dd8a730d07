-- pgcombine_internal.register_combiner(function, type) → text
-- Registers an aggregate, or a function of two arguments, as a combiner for one type, or updates the existing combiner.
-- Returns the combiner's name: the qualified function with the type, such as myschema.my_fn(bigint, bigint).
-- The combiner of a function folds with an aggregate that is made for the function. A function that isn't strict is
-- called through a strict one, so nulls are ignored. The function must not return null for two values.
-- Tables written: pgcombine.combiner.
create or replace function pgcombine_internal.register_combiner(function oid, type oid)
returns text
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _procedure constant pg_proc := (select p from pg_proc p where p.oid = function);
    _name constant text := format('%s.%I', _procedure.pronamespace::regnamespace, _procedure.proname);
    _type constant text := pgcombine_internal.type_name(type, -1);
    _combiner text;
    _made text;
    _call text := _name;
    _fold text;
    _merge text;
begin
    if _procedure.prokind = 'a' then
        _combiner := format('%s(%s)', _name, _type);
        -- an aggregate with a strict transition function ignores nulls by itself
        _fold := _name || '({value})' || (
            select case when p.proisstrict then ''
                else ' filter (where pg_catalog.num_nulls({value}) operator(pg_catalog.=) 0)' end
            from pg_aggregate a join pg_proc p on p.oid = a.aggtransfn where a.aggfnoid = _procedure.oid) || '::{type}';
        _merge := 'case when pg_catalog.num_nulls({old}, {new}) operator(pg_catalog.=) 0
            then (select ' || _name
                || '(pgcombine_value) from (values ({old}), ({new})) as pgcombine_both(pgcombine_value))
            else coalesce({old}, {new}) end::{type}';
    else
        _combiner := format('%s(%s, %s)', _name, _type, _type);
        -- the name depends only on the function and the type, so that all queues share the aggregate
        _made := format('pgcombine_internal.%I', format('fold_%s_%s',
            left(regexp_replace(_procedure.proname, '[^a-z0-9_]', '', 'g'), 40), left(md5(_combiner), 8)));
        if not _procedure.proisstrict then
            execute format('create or replace function %s(%s, %s) returns %s language sql strict return %s($1, $2)',
                _made, _type, _type, _type, _name);
            _call := _made;
        end if;
        execute format('create or replace aggregate %s(%s) (sfunc = %s, stype = %s)', _made, _type, _call, _type);
        execute format('grant execute on function %s(%s) to public', _made, _type);
        _fold := _made || '({value})::{type}';
        _merge := 'coalesce(' || _call || '({old}, {new}), {old}, {new})::{type}';
    end if;
    insert into pgcombine.combiner (combiner, fold, merge, types, function, type)
    values (_combiner, _fold, _merge, array[_type],
            format('%s(%s)', _name, (select string_agg(pgcombine_internal.type_name(a, -1), ', ' order by n)
                from unnest(_procedure.proargtypes) with ordinality t (a, n))), _type)
    on conflict (combiner) do update set fold = excluded.fold, merge = excluded.merge;
    return _combiner;
end
$$;
