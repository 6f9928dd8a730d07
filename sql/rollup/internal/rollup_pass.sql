-- pgcombine_internal.rollup_pass(rollup) → jsonb
-- Returns what passes need for a rollup's computed columns (see the column computed of pgcombine.queue); null: there
-- are none. A key that has kept rows isn't computed, since the source lacks these rows.
create or replace function pgcombine_internal.rollup_pass(rollup pgcombine.rollup)
returns jsonb
language sql stable
as $$
    select jsonb_build_object('columns', c -> 'columns', 'query', pgcombine_internal.rollup_computed(rollup),
        'needs', nullif(concat_ws(' and ', '(' || (c ->> 'needs') || ')', (
            select format('coalesce(v.%1$I, 0) operator(pg_catalog.+) coalesce(u.%1$I, 0) operator(pg_catalog.=) 0',
                s ->> 'name')
            from jsonb_array_elements((rollup).definition -> 'states') s
            where s ->> 'kind' = 'kept' and s ->> 'of' = (rollup).definition #>> '{states,0,name}')), ''))
    from (select nullif((rollup).definition -> 'computed', 'null')) computed (c)
    where c is not null
$$;
