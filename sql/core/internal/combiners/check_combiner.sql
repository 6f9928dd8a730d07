-- pgcombine_internal.check_combiner(combiner, name, type)
-- Refuses a combiner that doesn't take the type of its column, or that combines sample values wrongly: the result
-- depends on their order or grouping, two values give null, a value changes when it is combined with the result for no
-- values, or a user-defined combiner changes a single value. A combiner that passes may still be wrong for other
-- values.
-- Warns if the last digits of a sum depend on the order of updates (floating-point numbers). Warns if a function or an
-- aggregate can't be tried, since fewer than two samples of the type are known, or since all calls with different
-- samples fail.
--   name  the column's name, for the messages
-- Errors: PC003 the combiner doesn't take the type, or combines samples wrongly; the message then shows the samples.
create or replace function pgcombine_internal.check_combiner(combiner text, name text, type text)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $check$
declare
    _combiner pgcombine.combiner;
    _type constant oid := pgcombine_internal.base_type(check_combiner.type::regtype);
    _samples text[];
    _try text;
    _wrong text;
    _one record;
    _worked boolean := false;
    _error text;
begin
    select c.* into strict _combiner from pgcombine.combiner c where c.combiner = check_combiner.combiner;
    perform pgcombine_internal.require(
        _combiner.function is not null or _combiner.types is null
            or array[format_type(t.oid, null), t.typname, case t.typcategory
                when 'A' then 'anyarray' end] && _combiner.types,
        'PC003', format('combiner "%s" doesn''t take type "%s" of column "%s"', combiner, type, name),
        format('%s takes: %s', combiner, array_to_string(_combiner.types, ', ')))
    from pg_type t where t.oid = _type;
    if combiner in ('last', 'first', 'computed') then
        return; -- these combiners take every type
    end if;
    if combiner = 'sum' and _type in ('real'::regtype, 'double precision'::regtype) then
        raise warning 'sums of % in column "%" depend on the order of updates in their last digits', type, name
            using hint = 'the type numeric gives exact sums';
    end if;

    _samples := pgcombine_internal.samples(type);
    -- The query tries the combiner on all triples from three arrays of samples. If the combiner combines a triple
    -- wrongly, the query returns a sentence about such a triple.
    _try := pgcombine_internal.fill($trial$
        select z.wrong
        from (
            select case
                when {changed_alone} then format('it changes %s, a single value, into %s', quote_nullable(a),
                    coalesce(fa::text, 'null'))
                when num_nulls(ab) = 1 then format('it combines %s and %s into null', quote_nullable(a),
                    quote_nullable(b))
                when {other_order} then format('%s and %s give %s, but %s and %s give %s (not commutative)',
                    quote_nullable(a), quote_nullable(b), ab, quote_nullable(b), quote_nullable(a), ba)
                when {first_two} then format('%s, %s and %s give %s, but %s if the first two are combined first (not '
                    'associative)',
                    quote_nullable(a), quote_nullable(b), quote_nullable(c), abc, coalesce(ab_c::text, 'null'))
                when {last_two} then format('%s, %s and %s give %s, but %s if the last two are combined first (not '
                    'associative)',
                    quote_nullable(a), quote_nullable(b), quote_nullable(c), abc, coalesce(a_bc::text, 'null'))
                when {changed_by_nothing}
                    then format('it combines no values into %s, and %s changes when combined with that', nothing,
                    quote_nullable(a)) end as wrong
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
        jsonb_build_object('type', type, 'fold', pgcombine_internal.expand(_combiner.fold, 'v', '', type),
            'm_ab', pgcombine_internal.expand(_combiner.merge, 'x.fa', 'x.fb', type),
            'm_ba', pgcombine_internal.expand(_combiner.merge, 'x.fb', 'x.fa', type),
            'ab_c', pgcombine_internal.expand(_combiner.merge, 'x.ab', 'x.fc', type),
            'a_bc', pgcombine_internal.expand(_combiner.merge, 'x.fa', 'x.bc', type),
            'nothing_a', pgcombine_internal.expand(_combiner.merge, 'x.nothing', 'x.fa', type),
            -- a built-in combiner may normalize a single value (array_union sorts)
            'changed_alone', case when _combiner.function is null then 'false'
                else pgcombine_internal.differ_expression(type, 'a', 'fa') end,
            'other_order', pgcombine_internal.differ_expression(type, 'ab', 'ba') || ' or '
                || pgcombine_internal.differ_expression(type, 'm_ab', 'm_ba'),
            'first_two', pgcombine_internal.differ_expression(type, 'abc', 'ab_c'),
            'last_two', pgcombine_internal.differ_expression(type, 'abc', 'a_bc'),
            'changed_by_nothing', pgcombine_internal.differ_expression(type, 'nothing_a', 'fa')));
    begin
        execute _try using _samples, _samples, _samples into _wrong;
        _worked := cardinality(_samples) > 1;
    exception
        when undefined_function or datatype_mismatch or ambiguous_function or cannot_coerce
             or indeterminate_collation or collation_mismatch then
            raise exception 'combiner "%" doesn''t take type "%" of column "%"', combiner, type, name
                using errcode = 'PC003', hint = sqlerrm;
        when others then -- some samples are invalid for this function: try each triple alone
            _error := sqlerrm;
            for _one in select a, b, c from unnest(_samples) a cross join unnest(_samples) b
                cross join unnest(_samples) c loop
                begin
                    execute _try using array[_one.a], array[_one.b], array[_one.c] into _wrong;
                    _worked := _worked or _one.a <> _one.b;
                exception when others then null;
                end;
                exit when _wrong is not null;
            end loop;
    end;
    perform pgcombine_internal.require(_wrong is null, 'PC003',
        format('combiner "%s" can''t be used for column "%s": %s', combiner, name, _wrong),
        'the result must not depend on the order of updates, nor on how they are grouped');
    if _combiner.function is not null and not _worked then
        raise warning 'combiner "%" of column "%" wasn''t checked%', combiner, name,
            coalesce(': ' || _error, ': no samples of type ' || type || ' are known')
            using hint = 'make sure that its result depends neither on the order of updates nor on how they are '
                'grouped';
    end if;
end
$check$;
