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
    _texts jsonb;
begin
    select r.* into _rollup from pgcombine.rollup r where r.queue = get_rollup.queue;
    select jsonb_object_agg(e.part[2], e.part[1]) into _texts
    from regexp_matches(
        pgcombine_internal.printed_view(to_regclass(format('pgcombine_internal.%I', queue || '_expressions'))),
        '\( SELECT (.*?) AS pgcombine_expression\n +FROM [^\n]*\) AS ([eg]\d+)\M', 'g') e (part);
    if _texts is null then
        _rollup.definition := null;
        return _rollup;
    end if;
    _rollup.definition := pgcombine_internal.fill(_rollup.definition::text, (
        select jsonb_object_agg('pgcombine_' || t.key, left(substr(to_jsonb(t.value)::text, 2), -1)) -- without quotes
        from jsonb_each_text(_texts) t));
    select _rollup.definition
            || jsonb_build_object('generated', jsonb_object_agg(substr(t.key, 2),
                replace(t.value, 'pgcombine_row.', '')) filter (where t.key like 'g%'))
            || (
                select jsonb_object_agg(l.list, (
                    select jsonb_agg(e.value || coalesce((
                        select jsonb_build_object('type', pgcombine_internal.type_name(a.atttypid, a.atttypmod))
                        from pg_attribute a where a.attrelid = l.relation and a.attname = e.value ->> 'name'), '{}')
                        order by e.place)
                    from jsonb_array_elements(_rollup.definition -> l.list) with ordinality e (value, place)))
                from (values ('states', to_regclass(format('pgcombine.%I', queue || '_values'))),
                             ('columns', to_regclass(format('pgcombine.%I', queue)))) l (list, relation))
    into _rollup.definition
    from jsonb_each_text(_texts) t;
    return _rollup;
end
$$;
