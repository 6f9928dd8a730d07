-- pgcombine_internal.combiner_trial(combiner, type) → text
-- Returns a query that tries a combiner on three arrays of sample values ($1, $2, $3: text[]). The query returns a
-- sentence about the first values that the combiner combines wrongly; no row: there are none.
create or replace function pgcombine_internal.combiner_trial(combiner pgcombine.combiner, type text)
returns text
language plpgsql stable
as $$
declare
    _merge constant text := (combiner_trial.combiner).merge;
begin
    return pgcombine_internal.fill($trial$
        select z.wrong
        from (
            select case
                when {changed_alone} then format('it changes %s, a single value, into %s', quote_nullable(a), coalesce(fa::text, 'null'))
                when num_nulls(ab) = 1 then format('it combines %s and %s into null', quote_nullable(a), quote_nullable(b))
                when {other_order} then format('%s and %s give %s, but %s and %s give %s (not commutative)',
                    quote_nullable(a), quote_nullable(b), ab, quote_nullable(b), quote_nullable(a), ba)
                when {first_two} then format('%s, %s and %s give %s, but %s if the first two are combined first (not associative)',
                    quote_nullable(a), quote_nullable(b), quote_nullable(c), abc, coalesce(ab_c::text, 'null'))
                when {last_two} then format('%s, %s and %s give %s, but %s if the last two are combined first (not associative)',
                    quote_nullable(a), quote_nullable(b), quote_nullable(c), abc, coalesce(a_bc::text, 'null'))
                when {changed_by_nothing} then format('it combines no values into %s, and %s changes when combined with that', nothing, quote_nullable(a)) end as wrong
            from (
                select x.*, {m_ab} as m_ab, {m_ba} as m_ba, {ab_c} as ab_c, {a_bc} as a_bc, {nothing_a} as nothing_a
                from (
                    select a, b, c,
                        (select {fold} from (values (a)) as t(v)) as fa,
                        (select {fold} from (values (b)) as t(v)) as fb,
                        (select {fold} from (values (c)) as t(v)) as fc,
                        (select {fold} from (values (a), (b)) as t(v)) as ab,
                        (select {fold} from (values (b), (a)) as t(v)) as ba,
                        (select {fold} from (values (b), (c)) as t(v)) as bc,
                        (select {fold} from (values (a), (b), (c)) as t(v)) as abc,
                        (select {fold} from (values (a)) as t(v) where false) as nothing
                    from (select e::{type} from unnest($1::text[]) e) as p(a),
                         (select e::{type} from unnest($2::text[]) e) as q(b),
                         (select e::{type} from unnest($3::text[]) e) as r(c)
                    offset 0
                ) as x
                offset 0
            ) as y
        ) as z
        where z.wrong is not null
        limit 1$trial$,
        jsonb_build_object('type', type, 'fold', pgcombine_internal.expand((combiner_trial.combiner).fold, 'v', '', type),
            'm_ab', pgcombine_internal.expand(_merge, 'x.fa', 'x.fb', type), 'm_ba', pgcombine_internal.expand(_merge, 'x.fb', 'x.fa', type),
            'ab_c', pgcombine_internal.expand(_merge, 'x.ab', 'x.fc', type), 'a_bc', pgcombine_internal.expand(_merge, 'x.fa', 'x.bc', type),
            'nothing_a', pgcombine_internal.expand(_merge, 'x.nothing', 'x.fa', type),
            -- a built-in combiner may normalize a single value (array_union sorts)
            'changed_alone', case when (combiner_trial.combiner).function is null then 'false' else pgcombine_internal.differ_expression(type, 'a', 'fa') end,
            'other_order', pgcombine_internal.differ_expression(type, 'ab', 'ba') || ' or ' || pgcombine_internal.differ_expression(type, 'm_ab', 'm_ba'),
            'first_two', pgcombine_internal.differ_expression(type, 'abc', 'ab_c'), 'last_two', pgcombine_internal.differ_expression(type, 'abc', 'a_bc'),
            'changed_by_nothing', pgcombine_internal.differ_expression(type, 'nothing_a', 'fa')));
end
$$;
