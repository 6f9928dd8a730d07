-- pgcombine_internal.rollup_difference(rollup [, among, slices, slice]) → text
-- Returns the query of the updates that a rollup lacks: what its source holds and what kept rows have left, minus what
-- the rollup has, with pending and quarantined updates, in one snapshot. A key whose columns of kind sum lack nothing
-- has no row.
--   among          a query of the source for the keys to compare; null: all keys
--   slices, slice  only keys of the slice with this number, when a hash divides the keys into so many slices
-- A key that expires by its source's or its present values isn't compared.
-- The triggers append each later change, so the difference stays right while writers go on. A row makes the pass
-- compute the minima and maxima of its key, since it has the key's extremes in the columns for deleted extremes (kind
-- taken, see analyze_rollup).
create or replace function pgcombine_internal.rollup_difference(rollup pgcombine.rollup, among text default null,
    slices integer default 1, slice integer default 0)
returns text
language sql stable
as $$
    select pgcombine_internal.fill('select {keys}, {folds}
            from (select *, {expired} as pgcombine_expired from ({should}) as pgcombine_should
                union all {is}) as pgcombine_rows
            group by {keys} having ({differs}) and not bool_or(pgcombine_expired)',
        jsonb_build_object(
            'keys', k.names,
            'expired', k.expired,
            'folds', string_agg(format('%s as %I', case s.value ->> 'kind' when 'computed' then 'null::' || (s.value
                ->> 'type') else format('%s(%I)', s.value ->> 'combiner', s.value ->> 'name') end, s.value ->> 'name'),
                ', ' order by s.place),
            'should', pgcombine_internal.rollup_owned(rollup, pgcombine_internal.rollup_rows(rollup,
                pgcombine_internal.rollup_relation(rollup, (rollup).source::text), '=', nullif(concat_ws(' and ',
                pgcombine_internal.rollup_among(rollup, '(' || among || ') as pgcombine_slice'),
                format(k.hash, k.expressions)), ''))),
            'is', (
                select string_agg(concat(format('select %s, %s, %s from pgcombine.%I', k.names, v.list,
                        case suffix when '_values' then k.expired else 'false' end,
                        (rollup).queue || suffix), ' where ' || nullif(concat_ws(' and ',
                        pgcombine_internal.rollup_among(rollup, '(' || pgcombine_internal.rollup_owned(rollup, among,
                            k.keys) || ') as pgcombine_slice', columns => true), format(k.hash, k.names)), '')),
                    ' union all ')
                from unnest(array['_values', '_pending', '_quarantine']) suffix),
            'differs', string_agg(format('coalesce(sum(%I), 0) <> 0', s.value ->> 'name'), ' or ')
                filter (where s.value ->> 'kind' = 'sum')))
    from jsonb_array_elements((rollup).definition -> 'states') with ordinality s (value, place)
    cross join (
        select string_agg(case s ->> 'kind' when 'sum' then format('-%I', s ->> 'name') || coalesce((
                    select format(' + coalesce(%I, 0)', k ->> 'name')
                    from jsonb_array_elements((rollup).definition -> 'states') k
                    where k ->> 'kind' = 'kept' and k ->> 'of' = s ->> 'name'), '')
                when 'taken' then quote_ident(s ->> 'of')
                else format('null::%s', s ->> 'type') end, ', ' order by n) as list
        from jsonb_array_elements((rollup).definition -> 'states') with ordinality s (s, n)) v
    cross join (
        select pgcombine_internal.column_list((rollup).queue, 'key') as names,
               array_agg(e.value ->> 'name') as keys,
               string_agg(format('(%s)', e.value ->> 'expression'), ', ' order by e.place) as expressions,
               (select coalesce('coalesce(' || q.expire_when || ', false)', 'false') from pgcombine.queue q
                where q.queue = (rollup).queue) as expired,
               case when slices > 1 then format('hash_record_extended(row(%%s), 0) & %s = %s', slices - 1, slice)
                   end as hash
        from jsonb_array_elements((rollup).definition -> 'keys') with ordinality e (value, place)) k
    group by v.list, k.names, k.keys, k.expressions, k.expired, k.hash
$$;
