-- pgcombine_internal.rollup_rows(rollup, source [, sign, condition]) → text
-- Returns the select that folds rows of a rollup's source into updates of its queue, one for each key. Rows whose key
-- has a null are left out.
--   source     a from item, see rollup_relation
--   sign       '+': the updates for inserted rows. '-': those for deleted rows. '=': updates that make the queue's
--              values from all rows; for min and max they also make the pass compute the extreme (see
--              rollup_difference)
--   condition  a condition that further restricts the rows
create or replace function pgcombine_internal.rollup_rows(rollup pgcombine.rollup, source text, sign text default '+',
    condition text default null)
returns text
language sql stable
as $$
    select format('select %s, %s from %s where %s group by %s', k.named, s.list, rollup_rows.source,
        concat_ws(' and ', (rollup).definition ->> 'filter', k.present, condition),
        k.places)
    from (
        select string_agg(format('%s as %I', k.value ->> 'expression', k.value ->> 'name'), ', ' order by k.place)
                   as named,
               string_agg(format('(%s) is not null', k.value ->> 'expression'), ' and ' order by k.place) as present,
               string_agg(k.place::text, ', ' order by k.place) as places
        from jsonb_array_elements((rollup).definition -> 'keys') with ordinality k (value, place)) k
    cross join (
        select string_agg(format('%s as %I', case
                when s.value ->> 'kind' = 'sum' then format(case sign when '-' then '-(%s)' else '%s' end,
                    s.value ->> 'plus')
                when s.value ->> 'kind' = 'extreme' and sign <> '-' or s.value ->> 'kind' = 'taken' and sign <> '+'
                    then s.value ->> 'plus'
                else format('null::%s', s.value ->> 'type') end, s.value ->> 'name'), ', ' order by s.place) as list
        from jsonb_array_elements((rollup).definition -> 'states') with ordinality s (value, place)) s
$$;
