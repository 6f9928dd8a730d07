-- pgcombine_internal.get_rollup(queue) → pgcombine.rollup
-- Returns a rollup with the expressions in its definition (see analyze_rollup). The table pgcombine.rollup has {e1},
-- {e2} and so on in their place. The expressions themselves are in the view <queue>_expressions. So they have the new
-- name of each thing that was renamed, for example of an enum's label. definition is null if the view was dropped.
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
    _rollup.definition := case when _texts is not null then pgcombine_internal.fill(_rollup.definition::text, (
            select jsonb_object_agg(t.key, left(substr(to_jsonb(t.value)::text, 2), -1)) -- escaped, but not quoted
            from jsonb_each_text(_texts) t))::jsonb
        || jsonb_build_object('generated', (
            select jsonb_object_agg(substr(t.key, 2), replace(t.value, 'pgcombine_row.', ''))
            from jsonb_each_text(_texts) t where t.key like 'g%')) end;
    return _rollup;
end
$$;
