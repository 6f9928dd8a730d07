-- pgcombine_internal.rollup_statement(rollup, minus, plus [, moved]) → text
-- Returns the statement that enqueues a change of a rollup's source. With both minus and plus, the statement folds the
-- updates by key, and enqueues nothing for a key whose values stay the same, unless passes compute a column for every
-- key with updates (see analyze_rollup).
--   minus, plus  from items of the rows before and after the change, see rollup_relation; null: there are none
--   moved        whether the rows of minus aren't deleted: another statement has them as plus
create or replace function pgcombine_internal.rollup_statement(rollup pgcombine.rollup, minus text, plus text,
    moved boolean default false)
returns text
language sql stable
as $$
    select pgcombine_internal.fill(case when minus is null or plus is null
            then 'insert into pgcombine.{updates} ({columns}) {minus}{plus}'
            else 'insert into pgcombine.{updates} ({columns}) select {keys}, {folds} from ({minus} union all {plus}) '
                'as pgcombine_rows group by {keys}{changed}' end,
        jsonb_build_object('updates', quote_ident((rollup).queue || '_updates'),
            'columns', pgcombine_internal.column_list((rollup).queue),
            'keys', pgcombine_internal.column_list((rollup).queue, 'key'),
            'minus', case when minus is not null then pgcombine_internal.rollup_rows(rollup, minus,
                case when plus is null and not moved then '-' else '<' end) end,
            'plus', case when plus is not null then pgcombine_internal.rollup_rows(rollup, plus,
                lenient => minus is not null) end,
            'folds', pgcombine_internal.column_list((rollup).queue, 'value', '{fold} as {name}'),
            'changed', (
                select ' having ' || string_agg(case s ->> 'kind'
                    when 'sum' then format('sum(%I) <> 0', s ->> 'name')
                    when 'taken' then pgcombine_internal.differ_expression(s ->> 'type',
                        format('%s(%I)', s ->> 'combiner', s ->> 'name'),
                        format('%s(%I)', s ->> 'combiner', s ->> 'of')) end, ' or ')
                from jsonb_array_elements((rollup).definition -> 'states') s
                where (rollup).definition #>> '{computed,columns}' is null
                    or (rollup).definition #>> '{computed,needs}' is not null)))
$$;
