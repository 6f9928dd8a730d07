-- pgcombine.combiner_trial(combiner, type) → text
-- A query over three arrays of sample values ($1, $2, $3: text[]) that says what is wrong with a combiner, in
-- words, on the first values that show it; no row: nothing.
create or replace function pgcombine.combiner_trial(combiner pgcombine.combiner, type text)
returns text
language plpgsql stable
as $$
declare
    _fold constant text := pgcombine.expand((combiner_trial.combiner).fold, 'v', '', type, null, null);
    _merge constant text := (combiner_trial.combiner).merge;
begin
    return format($trial$
        select case
            when %2$s then format('of %%s alone it makes %%s', quote_nullable(a), coalesce(fa::text, 'null'))
            when num_nulls(ab) = 1 then format('of %%s and %%s it makes null', quote_nullable(a), quote_nullable(b))
            when %3$s or %4$s then format('%%s and %%s give %%s, but %%s and %%s give %%s (not commutative)',
                quote_nullable(a), quote_nullable(b), ab, quote_nullable(b), quote_nullable(a), ba)
            when %5$s then format('%%s, %%s and %%s give %%s, but %%s after the first two are combined (not associative)',
                quote_nullable(a), quote_nullable(b), quote_nullable(c), abc, coalesce(ab_c::text, 'null'))
            when %6$s then format('%%s, %%s and %%s give %%s, but %%s after the last two are combined (not associative)',
                quote_nullable(a), quote_nullable(b), quote_nullable(c), abc, coalesce(a_bc::text, 'null'))
            else format('of nothing it makes %%s, which changes %%s', nothing, quote_nullable(a)) end
        from (
            select x.*, %7$s as m_ab, %8$s as m_ba, %9$s as ab_c, %10$s as a_bc, %11$s as nothing_a
            from (
                select a, b, c,
                    (select %1$s from (values (a)) as t(v)) as fa,
                    (select %1$s from (values (b)) as t(v)) as fb,
                    (select %1$s from (values (c)) as t(v)) as fc,
                    (select %1$s from (values (a), (b)) as t(v)) as ab,
                    (select %1$s from (values (b), (a)) as t(v)) as ba,
                    (select %1$s from (values (b), (c)) as t(v)) as bc,
                    (select %1$s from (values (a), (b), (c)) as t(v)) as abc,
                    (select %1$s from (values (a)) as t(v) where false) as nothing
                from (select e::%12$s from unnest($1::text[]) e) as p(a),
                     (select e::%12$s from unnest($2::text[]) e) as q(b),
                     (select e::%12$s from unnest($3::text[]) e) as r(c)
                offset 0
            ) as x
            offset 0
        ) as y
        where %2$s or num_nulls(ab) = 1 or %3$s or %4$s or %5$s or %6$s or %13$s
        limit 1$trial$,
        _fold,
        -- a built-in one may put a value into a form of its own (array_union sorts)
        case when (combiner_trial.combiner).function is null then 'false' else pgcombine.differ_expression(type, 'a', 'fa') end,
        pgcombine.differ_expression(type, 'ab', 'ba'),
        pgcombine.differ_expression(type, 'm_ab', 'm_ba'),
        pgcombine.differ_expression(type, 'abc', 'ab_c'),
        pgcombine.differ_expression(type, 'abc', 'a_bc'),
        pgcombine.expand(_merge, 'x.fa', 'x.fb', type, null, null),
        pgcombine.expand(_merge, 'x.fb', 'x.fa', type, null, null),
        pgcombine.expand(_merge, 'x.ab', 'x.fc', type, null, null),
        pgcombine.expand(_merge, 'x.fa', 'x.bc', type, null, null),
        pgcombine.expand(_merge, 'x.nothing', 'x.fa', type, null, null),
        type,
        pgcombine.differ_expression(type, 'nothing_a', 'fa'));
end
$$;
