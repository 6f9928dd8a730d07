-- pgcombine_internal.rollup_computed(rollup [, touched, source]) → text
-- Returns the query that computes a rollup's computed columns from the source, for the keys in a from item.
--   touched  the from item; it has the key columns. Null: the keys that a pass has to compute
--   source   another from item for the source; all keys are computed then
create or replace function pgcombine_internal.rollup_computed(rollup pgcombine.rollup, touched text default null,
    source text default null)
returns text
language sql stable
as $$
    select case when touched is null and source is null then format(
            'with pgcombine_part as materialized (select '
            'pgcombine_internal.readable_parts(%L) as parts) ', (rollup).queue) else '' end
        || format('select %s, %s from %s%s group by %s', k.named, a.list,
        coalesce(source, format('pgcombine.%I as %I', (rollup).queue || '_source', (rollup).definition ->> 'alias')),
        -- the first condition calls readable_parts even if no row is found
        ' where ' || nullif(concat_ws(' and ', case when touched is null and source is null then
                '(select parts is not null from pgcombine_part) '
                'and pgcombine_part = any ((select parts from pgcombine_part)::oid[])' end,
            (rollup).definition ->> 'filter',
            case when source is null then pgcombine_internal.rollup_among(rollup, coalesce(touched,
                'pgcombine_touched')) end), ''), k.places)
    from (
        select string_agg(format('%s as %I', k.value ->> 'expression', k.value ->> 'name'), ', ' order by k.place)
                   as named,
               string_agg(k.place::text, ', ' order by k.place) as places
        from jsonb_array_elements((rollup).definition -> 'keys') with ordinality k (value, place)) k
    cross join (
        select string_agg(format('%s as %I', c ->> 'expression', c ->> 'name'), ', ') as list
        from jsonb_array_elements((rollup).definition -> 'aggregates') c) a
$$;
