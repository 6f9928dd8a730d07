-- pgcombine_internal.rollup_view(rollup) → text
-- Returns the query of the view that shows a rollup: its key and value columns, pending updates included.
-- Columns that passes combine are expressions over <queue>_current. So are columns that passes compute. But for a key
-- whose pending updates make a pass compute these columns, the view computes them from the source.
create or replace function pgcombine_internal.rollup_view(rollup pgcombine.rollup)
returns text
language sql stable
as $$
    select pgcombine_internal.fill(case when (rollup).definition #>> '{computed,columns}' is null
            then 'select {keys}, {columns} from pgcombine.{current} as c'
            else 'select {shown}, {columns}
                from pgcombine.{current} as c
                left join (select *, true as pgcombine_touched from ({computed}) as computed) as q on {same_key}' end,
        jsonb_build_object(
            'keys', pgcombine_internal.column_list((rollup).queue, 'key'),
            'shown', pgcombine_internal.column_list((rollup).queue, 'key', 'c.{name}'),
            'same_key', pgcombine_internal.column_list((rollup).queue, 'key', 'c.{name} {equals} q.{name}', ' and '),
            'current', quote_ident((rollup).queue || '_current'),
            'computed', case when (rollup).definition #>> '{computed,columns}' is not null then
                pgcombine_internal.rollup_computed(rollup, pgcombine_internal.fill(
                    case when pgcombine_internal.rollup_pass(rollup) ->> 'needs' is null
                        then '(select distinct {keys} from pgcombine.{pending}) as touched'
                        else '(select u.* from (select {keys}, {folds} from pgcombine.{pending} group by {keys}) as u
                            left join pgcombine.{values} as v on {same_key} where {needs}) as touched' end,
                    jsonb_build_object(
                        'keys', pgcombine_internal.column_list((rollup).queue, 'key'),
                        'folds', pgcombine_internal.column_list((rollup).queue, 'value', '{fold} as {name}'),
                        'pending', quote_ident((rollup).queue || '_pending'),
                        'values', quote_ident((rollup).queue || '_values'),
                        'same_key', pgcombine_internal.column_list((rollup).queue, 'key', 'v.{name} {equals} u.{name}',
                            ' and '),
                        'needs', pgcombine_internal.rollup_pass(rollup) ->> 'needs'))) end,
            'columns', (
                select string_agg(format(case when (rollup).definition #> '{computed,columns}' ? (c.value ->> 'name')
                        then 'case when q.pgcombine_touched then q.%1$I else c.%1$I end as %1$I'
                        else '(%3$s)::%2$s as %1$I' end, c.value ->> 'name', c.value ->> 'type',
                    c.value ->> 'expression'), ', ' order by c.place)
                from jsonb_array_elements((rollup).definition -> 'columns') with ordinality c (value, place))))
$$;
