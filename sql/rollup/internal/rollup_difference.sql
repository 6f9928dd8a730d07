-- pgcombine_internal.rollup_difference(rollup, condition) → text
-- Returns the query of the updates that a rollup lacks: what its source holds minus what the rollup has, with pending
-- and quarantined updates, in one snapshot. A key whose columns of kind sum lack nothing has no row.
--   condition  the condition over the key expressions ({keys}) of the keys to compare
-- The triggers append each later change, so the difference stays right while writers go on. A row makes the pass
-- compute the minima and maxima of its key, since it has the key's extremes in the columns for deleted extremes (kind
-- taken, see analyze_rollup).
create or replace function pgcombine_internal.rollup_difference(rollup pgcombine.rollup, condition text)
returns text
language sql stable
as $$
    select pgcombine_internal.fill('select {keys}, {folds} from ({should} union all {is}) as pgcombine_rows
            group by {keys} having {differs}',
        jsonb_build_object(
            'keys', pgcombine_internal.column_list((rollup).queue, 'key'),
            'folds', string_agg(format('%s as %I', case s.value ->> 'kind' when 'computed' then 'null::' || (s.value
                ->> 'type') else format('%s(%I)', s.value ->> 'combiner', s.value ->> 'name') end, s.value ->> 'name'),
                ', ' order by s.place),
            'should', pgcombine_internal.rollup_rows(rollup, format('pgcombine.%I as %I', (rollup).queue || '_source',
                (rollup).definition ->> 'alias'), '=', condition),
            'is', (
                select string_agg(format('select %s, %s from pgcombine.%I where %s', pgcombine_internal.column_list(
                        (rollup).queue, 'key'), v.list, (rollup).queue || suffix,
                        replace(condition, '{keys}', pgcombine_internal.column_list((rollup).queue, 'key'))),
                    ' union all ')
                from unnest(array['_values', '_pending', '_quarantine']) suffix),
            'differs', string_agg(format('coalesce(sum(%I), 0) <> 0', s.value ->> 'name'), ' or ')
                filter (where s.value ->> 'kind' = 'sum')))
    from jsonb_array_elements((rollup).definition -> 'states') with ordinality s (value, place)
    cross join (
        select string_agg(case s ->> 'kind' when 'sum' then format('-%I', s ->> 'name')
                when 'taken' then quote_ident(s ->> 'of')
                else format('null::%s', s ->> 'type') end, ', ' order by n) as list
        from jsonb_array_elements((rollup).definition -> 'states') with ordinality s (s, n)) v
    group by v.list
$$;
