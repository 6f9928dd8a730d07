-- pgcombine.check_combiner(combiner, name, type)
-- Refuses a combiner that doesn't fit the type of its column.
-- Errors: PC003.
create or replace function pgcombine.check_combiner(combiner text, name text, type text)
returns void
language plpgsql stable
as $$
declare
    _combiner pgcombine.combiner;
    _base text;
    _probe refcursor;
begin
    select c.* into strict _combiner from pgcombine.combiner c where c.combiner = check_combiner.combiner;
    select format_type(coalesce(nullif(t.typbasetype, 0), t.oid), null) into _base
    from pg_type t where t.oid = check_combiner.type::regtype;
    if _combiner.types is not null and not _base = any (_combiner.types) then
        raise exception 'combiner "%" doesn''t take type "%" of column "%"', combiner, type, name
            using errcode = 'PC003', hint = format('%s takes: %s', combiner, array_to_string(_combiner.types, ', '));
    end if;
    begin -- compile fold and merge on a null of that type
        open _probe for execute format('select %s, %s from (select null::%s as v) as probe group by v',
            format(_combiner.fold, 'v', null, type), format(_combiner.merge, 'v', 'v', type), type);
        close _probe;
    exception when undefined_function or datatype_mismatch or ambiguous_function or cannot_coerce
                or indeterminate_collation or collation_mismatch then
        raise exception 'combiner "%" doesn''t take type "%" of column "%"', combiner, type, name
            using errcode = 'PC003', hint = sqlerrm;
    end;
end
$$;
