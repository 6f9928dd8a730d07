-- pgcombine_internal.register_combiner(function, type) → text
-- Makes a combiner of a function of two arguments or an aggregate, for one type. Returns the combiner's name: the
-- qualified function with the type, such as myschema.my_fn(bigint, bigint). A combiner that exists is brought up to
-- date.
-- A function is folded by an aggregate made for it, pgcombine.fold_<name>_<hash>. Nulls are ignored: a function that
-- isn't strict is called through a strict one. It must not return null for two values that aren't null.
-- The function can't be dropped as long as a queue combines by it.
-- Tables written: pgcombine.combiner.
create or replace function pgcombine_internal.register_combiner(function oid, type oid)
returns text
language plpgsql
as $$
declare
    _procedure pg_proc;
    _name constant text := pgcombine_internal.procedure_name(register_combiner.function);
    _type constant text := pgcombine_internal.type_name(register_combiner.type, -1);
    _combiner text;
    _made text;
    _call text := _name;
    _fold text;
    _merge text;
begin
    select p.* into strict _procedure from pg_proc p where p.oid = register_combiner.function;
    if _procedure.prokind = 'a' then
        _combiner := format('%s(%s)', _name, _type);
        -- an aggregate with a strict transition function ignores nulls by itself
        _fold := format('%s(%%1$s)%s::%%3$s', replace(_name, '%', '%%'), (
            select case when p.proisstrict then '' else ' filter (where pg_catalog.num_nulls(%1$s) operator(pg_catalog.=) 0)' end
            from pg_aggregate a join pg_proc p on p.oid = a.aggtransfn where a.aggfnoid = _procedure.oid));
        _merge := format('case when pg_catalog.num_nulls(%%1$s, %%2$s) operator(pg_catalog.=) 0
            then (select %s(pgcombine_value) from (values (%%1$s), (%%2$s)) as pgcombine_both(pgcombine_value))
            else coalesce(%%1$s, %%2$s) end::%%3$s', replace(_name, '%', '%%'));
    else
        _combiner := format('%s(%s, %s)', _name, _type, _type);
        -- the name depends on the function alone, so that all queues share the aggregate
        _made := format('pgcombine_internal.%I', format('fold_%s_%s', left(regexp_replace(_procedure.proname, '[^a-z0-9_]', '', 'g'), 40), left(md5(_combiner), 8)));
        if not _procedure.proisstrict then
            execute format('create or replace function %1$s(%2$s, %2$s) returns %2$s language sql strict return %3$s($1, $2)',
                _made, _type, _name);
            _call := _made;
        end if;
        execute format('create or replace aggregate %1$s(%2$s) (sfunc = %3$s, stype = %2$s)', _made, _type, _call);
        execute format('grant execute on function %s(%s) to public', _made, _type);
        _fold := format('%s(%%1$s)::%%3$s', replace(_made, '%', '%%'));
        _merge := format('coalesce(%s(%%1$s, %%2$s), %%1$s, %%2$s)::%%3$s', replace(_call, '%', '%%'));
    end if;
    insert into pgcombine.combiner (combiner, fold, merge, types, function, type)
    values (_combiner, _fold, _merge, array[_type],
            format('%s(%s)', _name, pgcombine_internal.argument_types(_procedure.oid)), _type)
    on conflict (combiner) do update set fold = excluded.fold, merge = excluded.merge;
    return _combiner;
end
$$;
