-- pgcombine_internal.rollup_fits(rollup) → text
-- Returns the condition that the key of a source's row isn't too long for the rollup's queue (see create_tables); null:
-- all keys fit.
create or replace function pgcombine_internal.rollup_fits(rollup pgcombine.rollup)
returns text
language sql stable
as $$
    select string_agg(pgcombine_internal.value_size((k.value ->> 'type')::regtype, k.value ->> 'expression'), ' + '
        order by k.place) || ' <= 2600'
    from jsonb_array_elements((rollup).definition -> 'keys') with ordinality k (value, place)
$$;
