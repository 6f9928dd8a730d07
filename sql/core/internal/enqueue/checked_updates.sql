-- pgcombine_internal.checked_updates(queue, updates, columns, keys) → jsonb
-- Returns the updates of enqueue as an array.
--   columns  the queue's columns, keys first
--   keys     number of key columns
-- The keys are checked before the insert. Catching the insert's error would take a subtransaction, and many
-- subtransactions in one transaction slow down every snapshot.
-- Errors: PC004 neither an object nor an array of objects, an unknown column, a key that is missing or null.
create or replace function pgcombine_internal.checked_updates(queue text, updates jsonb, columns text[], keys bigint)
returns jsonb
language plpgsql immutable
as $$
declare
    _updates constant jsonb := case jsonb_typeof(updates)
        when 'object' then jsonb_build_array(updates) else updates end;
    _wrong text;
begin
    if jsonb_typeof(_updates) = 'array' and not exists (
        select from jsonb_array_elements(_updates) u
        where case jsonb_typeof(u) when 'object'
            then u - columns <> '{}' or not jsonb_strip_nulls(u) ?& columns[:keys] else true end)
    then
        return _updates;
    end if;
    if jsonb_typeof(_updates) is distinct from 'array' or exists (
        select from jsonb_array_elements(_updates) u where jsonb_typeof(u) <> 'object')
    then
        raise exception 'updates of queue "%" must be a JSON array of objects, not %', queue,
            coalesce(left(updates::text, 60), 'null')
            using errcode = 'PC004', hint = 'for example [{"word": "fluo", "n": 1}]';
    end if;
    select string_agg(distinct format('"%s"', k), ', ') into _wrong
    from jsonb_array_elements(_updates) u, jsonb_object_keys(u) k
    where k <> all (columns);
    if _wrong is not null then
        raise exception 'queue "%" has no column %', checked_updates.queue, _wrong
            using errcode = 'PC004', hint = 'its columns: '
                || (select string_agg(quote_ident(c), ', ' order by n) from unnest(columns) with ordinality o (c, n));
    end if;
    select string_agg(format('"%s"', c), ', ' order by n) into _wrong
    from unnest(columns[:keys]) with ordinality o (c, n)
    where exists (select from jsonb_array_elements(_updates) u where u ->> c is null);
    if _wrong is not null then
        raise exception 'an update of queue "%" has no key: % is missing or null', queue, _wrong
            using errcode = 'PC004', hint = 'every key column needs a value';
    end if;
    return _updates;
end
$$;
