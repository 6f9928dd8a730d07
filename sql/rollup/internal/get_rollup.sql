-- pgcombine_internal.get_rollup(queue) → pgcombine.rollup
-- Returns a rollup with the expressions in its definition (see analyze_rollup). The table pgcombine.rollup has
-- {pgcombine_e1} and so on in their place. The expressions come from the view <queue>_expressions, and the types from
-- the columns. So both are right after a rename. definition is null if the view was dropped.
-- If the queue isn't a rollup, all columns of the result are null.
-- The definition also has "generated": for each generated column that the rollup reads, its expression when the rollup
-- was made, by the column's place in the view <queue>_source.
create or replace function pgcombine_internal.get_rollup(queue text)
returns pgcombine.rollup
language plpgsql stable
as $$
declare
    _rollup pgcombine.rollup;
    _places jsonb;
    _pieces text[];
    _texts jsonb;
begin
    select r.* into _rollup from pgcombine.rollup r where r.queue = get_rollup.queue;
    _places := _rollup.definition -> 'places';
    -- the mark stands before and after each expression, and nowhere else (see make_rollup_views)
    _pieces := string_to_array(
        pgcombine_internal.printed_sql(to_regclass(format('pgcombine_internal.%I', queue || '_expressions'))),
        quote_literal(_rollup.definition ->> 'mark') || '::text');
    if cardinality(_pieces) = 2 * jsonb_array_length(_places) + 1 then
        select jsonb_object_agg('pgcombine_' || p.place, btrim(_pieces[2 * p.number], E', \n'))
        into _texts
        from jsonb_array_elements_text(_places) with ordinality p (place, number);
    end if;
    if _texts is null then
        _rollup.definition := null;
        return _rollup;
    end if;
    select jsonb_build_object(
               'alias', _rollup.definition -> 'alias',
               'filter', _texts -> btrim(_rollup.definition ->> 'filter', '{}'),
               'keep', _texts -> btrim(_rollup.definition ->> 'keep', '{}'),
               'generated', (
                   select jsonb_object_agg(substr(t.key, length('pgcombine_g') + 1), t.value)
                   from jsonb_each(_texts) t where starts_with(t.key, 'pgcombine_g')),
               'computed', _rollup.definition -> 'computed')
           || jsonb_object_agg(l.list, (
               select coalesce(jsonb_agg(e.value || coalesce((
                   select jsonb_build_object('type', pgcombine_internal.type_name(a.atttypid, a.atttypmod))
                   from pg_attribute a where a.attrelid = l.relation and a.attname = e.value ->> 'name'), '{}')
                   || case when e.value ? l.member then jsonb_build_object(l.member,
                       pgcombine_internal.fill(e.value ->> l.member, _texts)) else '{}' end order by e.place), '[]')
               from jsonb_array_elements(_rollup.definition -> l.list) with ordinality e (value, place)))
    into _rollup.definition
    from (values ('aggregates', 'expression', null),
                 ('keys', 'expression', to_regclass(format('pgcombine.%I', queue || '_values'))),
                 ('states', 'plus', to_regclass(format('pgcombine.%I', queue || '_values'))),
                 ('columns', null, to_regclass(format('pgcombine.%I', queue)))) l (list, member, relation);
    if _rollup.definition #>> '{computed,needs}' is not null then
        _rollup.definition := jsonb_set(_rollup.definition, '{computed,needs}', (
            select to_jsonb(string_agg(format('u.%2$I is not null and u.%2$I %4$s %3$s(u.%2$I, v.%1$I, u.%1$I)',
                s ->> 'of', s ->> 'name', case s ->> 'combiner' when 'min' then 'least' else 'greatest' end,
                (pgcombine_internal.type_operator((s ->> 'type')::regtype, 3)).name), ' or '))
            from jsonb_array_elements(_rollup.definition -> 'states') s where s ->> 'kind' = 'taken'));
    end if;
    return _rollup;
end
$$;
