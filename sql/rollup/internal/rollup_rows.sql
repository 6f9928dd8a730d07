-- pgcombine_internal.rollup_rows(rollup, source [, sign, condition, lenient]) → text
-- Returns the select that folds rows of a rollup's source into updates of its queue, one for each key; for deleted rows
-- another one if rows are kept. Rows whose key has a null are left out.
--   source     a from item, see rollup_relation
--   sign       '+': the updates for inserted rows. '-': those for deleted rows, of which some are kept. '<': those for
--              rows before an update, of which none are kept. '^': those for kept rows (see analyze_rollup). '=':
--              updates that make the queue's values from all rows; for min and max they also make the pass compute the
--              extreme (see rollup_difference)
--   condition  a condition that further restricts the rows
--   lenient    whether rows with a key that is too long for the queue are left out, and values that are too long as
--              minimum or maximum. Otherwise the queue refuses them. Such rows that exist must not keep the source from
--              being changed, so only inserts are refused
create or replace function pgcombine_internal.rollup_rows(rollup pgcombine.rollup, source text, sign text default '+',
    condition text default null, lenient boolean default true)
returns text
language sql stable
as $$
    select case when sign = '-' and (rollup).definition ->> 'keep' is not null then
        pgcombine_internal.rollup_rows(rollup, source, '<', concat_ws(' and ', condition,
            '(' || ((rollup).definition ->> 'keep') || ') is not true')) || ' union all '
        || pgcombine_internal.rollup_rows(rollup, source, '^', concat_ws(' and ', condition,
            '(' || ((rollup).definition ->> 'keep') || ')'))
    else format('select %s, %s from %s where %s group by %s', k.named, s.list, rollup_rows.source,
        concat_ws(' and ', (rollup).definition ->> 'filter', k.present,
            case when lenient then pgcombine_internal.rollup_fits(rollup) end, condition),
        k.places) end
    from (
        select string_agg(format('%s as %I', k.value ->> 'expression', k.value ->> 'name'), ', ' order by k.place)
                   as named,
               -- not "is not null", which a row with a null field isn't
               string_agg(format('(%s) is distinct from null', k.value ->> 'expression'), ' and '
                   order by k.place) as present,
               string_agg(k.place::text, ', ' order by k.place) as places
        from jsonb_array_elements((rollup).definition -> 'keys') with ordinality k (value, place)) k
    cross join (
        select string_agg(format('%s as %I', case
                when s.value ->> 'kind' = 'sum' then format(case when sign in ('-', '<') then '-(%s)'
                    when sign = '^' then '0' else '%s' end, s.value ->> 'plus')
                when s.value ->> 'kind' = 'extreme' and sign = '+' and not lenient
                    or s.value ->> 'kind' = 'taken' and sign not in ('+', '^')
                    or s.value ->> 'kind' = 'kept' and sign = '^'
                    then s.value ->> 'plus'
                when s.value ->> 'kind' = 'extreme' and sign not in ('-', '<') then (
                    select t ->> 'plus' from jsonb_array_elements((rollup).definition -> 'states') t
                    where t ->> 'of' = s.value ->> 'name')
                else format('null::%s', s.value ->> 'type') end, s.value ->> 'name'), ', ' order by s.place) as list
        from jsonb_array_elements((rollup).definition -> 'states') with ordinality s (value, place)) s
$$;
