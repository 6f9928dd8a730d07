-- pgcombine_internal.aggregate_result(aggregate, states) → text
-- Returns the expression that computes an aggregate from its states.
--   states  the column of each state, by the state's name (see aggregate_states). If passes compute the aggregate, its
--           only state is named computed
create or replace function pgcombine_internal.aggregate_result(aggregate text, states jsonb)
returns text
language sql immutable
as $$
    select pgcombine_internal.fill(pgcombine_internal.fill(case
            when states ? 'computed' then '{computed}'
            when aggregate = 'count(*)' then '{rows}'
            when aggregate in ('count', 'min', 'max') then '{' || aggregate || '}'
            when aggregate = 'sum' then 'case{infinite} when {n} > 0 then {sum} end'
            when aggregate = 'avg' then 'case{infinite} when {n} > 0 then {sum}::numeric / {n} end'
            when aggregate in ('variance', 'var_samp') then 'case when {n} <= 1 then null{not_finite} else {samp} end'
            when aggregate = 'var_pop' then 'case{not_finite} when {n} > 0 then {pop} end'
            when aggregate in ('stddev', 'stddev_samp')
                then 'case when {n} <= 1 then null{not_finite} else round(sqrt({samp}), scale({samp})) end'
            when aggregate = 'stddev_pop'
                then 'case{not_finite} when {n} > 0 then round(sqrt({pop}), scale({pop})) end' end,
        jsonb_build_object('n', '({rows} - coalesce({nulls}, 0))',
            'samp', '(greatest(({rows} - coalesce({nulls}, 0)) * {squares} - {sum}::numeric * {sum}, 0)'
                ' / (({rows} - coalesce({nulls}, 0)) * (({rows} - coalesce({nulls}, 0))::numeric - 1)))',
            'pop', '(greatest(({rows} - coalesce({nulls}, 0)) * {squares} - {sum}::numeric * {sum}, 0)'
                ' / (({rows} - coalesce({nulls}, 0))::numeric * ({rows} - coalesce({nulls}, 0))))',
            'infinite', case when states ? 'nans' then
                ' when coalesce({nans}, 0) > 0 or coalesce({infinities}, 0) > 0 and coalesce({negative_infinities}, 0)'
                ' > 0 then ''NaN'' when coalesce({infinities}, 0) > 0 then ''Infinity'''
                ' when coalesce({negative_infinities}, 0) > 0 then ''-Infinity''' end,
            'not_finite', case when states ? 'nans' then
                ' when coalesce({nans}, 0) + coalesce({infinities}, 0) + coalesce({negative_infinities}, 0) > 0'
                ' then ''NaN''::numeric' end)), states)
$$;
