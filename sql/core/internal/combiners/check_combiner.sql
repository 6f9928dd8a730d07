-- pgcombine_internal.check_combiner(combiner, name, type)
-- Refuses a combiner that doesn't take the type of its column, or whose result depends on the order or grouping of
-- sample values. A combiner that passes may still be wrong for other values.
-- Warns if the last digits of a sum depend on the order of updates (floating-point numbers), and if a function or
-- aggregate can't be tried for lack of samples.
--   name  the column's, for the messages
-- Errors: PC003 the combiner doesn't fit; the message shows the counterexample.
create or replace function pgcombine_internal.check_combiner(combiner text, name text, type text)
returns void
language plpgsql
as $$
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
            or array[format_type(t.oid, null), t.typname, case t.typcategory when 'A' then 'anyarray' end] && _combiner.types,
        'PC003', format('combiner "%s" doesn''t take type "%s" of column "%s"', combiner, type, name),
        format('%s takes: %s', combiner, array_to_string(_combiner.types, ', ')))
    from pg_type t where t.oid = _type;
    if combiner in ('last', 'first') then
        return; -- these combiners take every type
    end if;
    if combiner = 'sum' and _type in ('real'::regtype, 'double precision'::regtype) then
        raise warning 'sums of % in column "%" depend on the order of updates in their last digits', type, name
            using hint = 'the type numeric gives exact sums';
    end if;

    _samples := pgcombine_internal.samples(type);
    _try := pgcombine_internal.combiner_trial(_combiner, type);
    begin
        execute _try using _samples, _samples, _samples into _wrong;
        _worked := cardinality(_samples) > 1;
    exception
        when undefined_function or datatype_mismatch or ambiguous_function or cannot_coerce
             or indeterminate_collation or collation_mismatch then
            raise exception 'combiner "%" doesn''t take type "%" of column "%"', combiner, type, name
                using errcode = 'PC003', hint = sqlerrm;
        when others then -- some samples are invalid for this function: try them one by one
            _error := sqlerrm;
            for _one in select a, b, c from unnest(_samples) a cross join unnest(_samples) b cross join unnest(_samples) c loop
                begin
                    execute _try using array[_one.a], array[_one.b], array[_one.c] into _wrong;
                    _worked := _worked or _one.a <> _one.b;
                exception when others then null;
                end;
                exit when _wrong is not null;
            end loop;
    end;
    perform pgcombine_internal.require(_wrong is null, 'PC003', format('combiner "%s" can''t be used for column "%s": %s', combiner, name, _wrong),
        'the result must not depend on the order of updates, nor on how they are grouped');
    if _combiner.function is not null and not _worked then
        raise warning 'combiner "%" of column "%" wasn''t checked%', combiner, name,
            coalesce(': ' || _error, ': no samples of type ' || type || ' are known')
            using hint = 'make sure that its result depends neither on the order of updates nor on how they are grouped';
    end if;
end
$$;
