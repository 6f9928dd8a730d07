-- pgcombine.check_combiner(combiner, name, type)
-- Refuses a combiner that doesn't fit the type of its column, or that samples of the type show to depend on the
-- order or the grouping of updates. (What samples don't show may still be wrong: they are a few values only.)
-- Warns of sums of floating-point numbers, which depend on it in their last digits, and where a function or an
-- aggregate can't be tried since no samples of the type are known.
--   name  of the column, for the messages
-- Errors: PC003, with the counterexample.
create or replace function pgcombine.check_combiner(combiner text, name text, type text)
returns void
language plpgsql
as $$
declare
    _combiner pgcombine.combiner;
    _type constant oid := pgcombine.base_type(check_combiner.type::regtype);
    _samples text[];
    _try text;
    _wrong text;
    _a text;
    _b text;
    _c text;
    _worked boolean := false;
    _error text;
begin
    select c.* into strict _combiner from pgcombine.combiner c where c.combiner = check_combiner.combiner;
    if _combiner.function is null and _combiner.types is not null and not exists (
        select from pg_type t
        where t.oid = _type
          and (format_type(t.oid, null) = any (_combiner.types) or t.typname = any (_combiner.types)
               or t.typcategory = 'A' and 'anyarray' = any (_combiner.types)))
    then
        raise exception 'combiner "%" doesn''t take type "%" of column "%"', combiner, type, name
            using errcode = 'PC003', hint = format('%s takes: %s', combiner, array_to_string(_combiner.types, ', '));
    end if;
    if combiner in ('last', 'first', 'python') then
        return; -- any type goes
    end if;
    if combiner = 'sum' and _type in ('real'::regtype, 'double precision'::regtype) then
        raise warning 'sums of % in column "%" depend on the order of updates in their last digits', type, name
            using hint = 'numeric is exact';
    end if;

    _samples := pgcombine.samples(type);
    _try := pgcombine.combiner_trial(_combiner, type);
    begin
        execute _try using _samples, _samples, _samples into _wrong;
        _worked := cardinality(_samples) > 1;
    exception
        when undefined_function or datatype_mismatch or ambiguous_function or cannot_coerce
             or indeterminate_collation or collation_mismatch then
            raise exception 'combiner "%" doesn''t take type "%" of column "%"', combiner, type, name
                using errcode = 'PC003', hint = sqlerrm;
        when others then -- some samples are not for this function: leave them out, one by one
            _error := sqlerrm;
            foreach _a in array _samples loop
                foreach _b in array _samples loop
                    foreach _c in array _samples loop
                        begin
                            execute _try using array[_a], array[_b], array[_c] into _wrong;
                            _worked := _worked or _a <> _b;
                        exception when others then
                            null;
                        end;
                        exit when _wrong is not null;
                    end loop;
                    exit when _wrong is not null;
                end loop;
                exit when _wrong is not null;
            end loop;
    end;
    if _wrong is not null then
        raise exception 'combiner "%" can''t be used for column "%": %', combiner, name, _wrong
            using errcode = 'PC003', hint = 'the result must not depend on the order of updates, nor on how they are grouped';
    end if;
    if _combiner.function is not null and not _worked then
        raise warning 'combiner "%" of column "%" wasn''t checked%', combiner, name,
            coalesce(': ' || _error, ': no samples of type ' || type || ' are known')
            using hint = 'make sure that its result depends neither on the order of updates nor on how they are grouped';
    end if;
end
$$;
