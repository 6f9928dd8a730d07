-- pgcombine_internal.aggregate_states(aggregate, argument, argument_type, condition) → (state, kind, type, plus)
-- Returns the states from which aggregate_result computes an aggregate. No row: passes compute the aggregate from the
-- rows of the source.
--   state      name of the state, such as rows or nulls
--   kind, plus see analyze_rollup
--   type       type of the state; null: that of the aggregate
-- A sum alone isn't enough: sum(x) is null if no x has a value, and an infinity can't be subtracted from a sum. So
-- nulls, NaN and infinities are counted apart. These counts are null instead of 0.
create or replace function pgcombine_internal.aggregate_states(aggregate text, argument text, argument_type regtype,
    condition text)
returns table (state text, kind text, type text, plus text)
language sql stable
as $$
    with parameter as (
        select pgcombine_internal.base_type(coalesce(argument_type, 'text'::regtype)) in ('smallint'::regtype,
                   'integer'::regtype, 'bigint'::regtype, 'numeric'::regtype)
               and aggregate in ('sum', 'avg', 'variance', 'var_samp', 'var_pop', 'stddev', 'stddev_samp',
                   'stddev_pop') as sums,
               argument_type = 'numeric'::regtype as special
    )
    select s.state, s.kind, s.type, pgcombine_internal.fill(s.plus, jsonb_build_object('x', argument,
        'and', '(' || condition || ') and ', 'filter', ' filter (where ' || condition || ')',
        'finite', ' filter (where ' || nullif(concat_ws(' and ', '(' || condition || ')',
            case when p.special then format('(%s) not in (''NaN'', ''Infinity'', ''-Infinity'')', argument) end), '')
            || ')'))
    from parameter p
    cross join lateral (values
        (aggregate = 'count(*)' or p.sums, 'rows', 'sum', 'bigint', 'count(*){filter}'),
        (aggregate = 'count', 'count', 'sum', 'bigint', 'count({x}){filter}'),
        (aggregate = 'min', 'min', 'extreme', null, 'min({x}){filter}'),
        (aggregate = 'max', 'max', 'extreme', null, 'max({x}){filter}'),
        (p.sums, 'nulls', 'sum', 'bigint', 'nullif(count(*) filter (where {and}({x}) is null), 0)'),
        (p.sums, 'sum', 'sum', case when argument_type in ('bigint'::regtype, 'numeric'::regtype) then 'numeric'
            else 'bigint' end, 'coalesce(sum({x}){finite}, 0)'),
        (p.sums and aggregate not in ('sum', 'avg'), 'squares', 'sum', 'numeric',
            'coalesce(sum(({x})::numeric * ({x})){finite}, 0)'),
        (p.sums and p.special, 'nans', 'sum', 'bigint',
            'nullif(count(*) filter (where {and}({x}) = ''NaN''), 0)'),
        (p.sums and p.special, 'infinities', 'sum', 'bigint',
            'nullif(count(*) filter (where {and}({x}) = ''Infinity''), 0)'),
        (p.sums and p.special, 'negative_infinities', 'sum', 'bigint',
            'nullif(count(*) filter (where {and}({x}) = ''-Infinity''), 0)')) s (needed, state, kind, type, plus)
    where s.needed
$$;
