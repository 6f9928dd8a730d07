-- pgcombine_internal.rollup_touched(rollup) → text
-- Returns the condition that a pending update of a rollup makes a pass compute columns from the source.
create or replace function pgcombine_internal.rollup_touched(rollup pgcombine.rollup)
returns text
language sql stable
as $$
    select coalesce(string_agg(format('%I is not null', s ->> 'name'), ' or '), 'true')
    from jsonb_array_elements((rollup).definition -> 'states') s
    where s ->> 'kind' = 'taken' and (rollup).definition #>> '{computed,needs}' is not null
$$;
