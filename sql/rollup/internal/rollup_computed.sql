-- pgcombine_internal.rollup_computed(rollup [, touched, source]) → text
-- Returns the query that computes a rollup's computed columns from the source, for the keys in a from item. The query
-- joins the keys, which are few, so that PostgreSQL may begin with them.
--   touched  the from item; it has each key once, in the key columns. Null: the keys that a pass has to compute
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
        coalesce(source, format('pgcombine.%I as %I, (select %s from %s) as pgcombine_among',
            (rollup).queue || '_source', (rollup).definition ->> 'alias', k.among,
            coalesce(touched, 'pgcombine_touched'))),
        -- the first condition calls readable_parts even if no row is found
        ' where ' || nullif(concat_ws(' and ', case when touched is null and source is null then
                '(select parts is not null from pgcombine_part) '
                'and pgcombine_part = any ((select parts from pgcombine_part)::oid[])' end,
            (rollup).definition ->> 'filter',
            case when source is null then k.same end), ''), k.places)
    from (
        select string_agg(format('%s as %I', k.value ->> 'expression', k.value ->> 'name'), ', ' order by k.place)
                   as named,
               string_agg(k.place::text, ', ' order by k.place) as places,
               -- other names, since an expression may name a column of the source
               string_agg(format('%I as pgcombine_key_%s', k.value ->> 'name', k.place), ', ') as among,
               string_agg(format('(%s) %s pgcombine_key_%s', k.value ->> 'expression',
                   (pgcombine_internal.type_operator((k.value ->> 'type')::regtype, 3)).name, k.place), ' and ') as same
        from jsonb_array_elements((rollup).definition -> 'keys') with ordinality k (value, place)) k
    cross join (
        select string_agg(format('%s as %I', c ->> 'expression', c ->> 'name'), ', ') as list
        from jsonb_array_elements((rollup).definition -> 'aggregates') c) a
$$;
