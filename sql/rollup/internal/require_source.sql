-- pgcombine_internal.require_source(rollup)
-- Raises an error unless all that a rollup's expressions use still exists: the source, its columns, functions, types.
-- Errors: PC003 one of these was dropped.
create or replace function pgcombine_internal.require_source(rollup pgcombine.rollup)
returns void
language sql stable
as $$
    select pgcombine_internal.require((rollup).definition is not null,
        'PC003', format('rollup "%s" can''t read its source any more', (rollup).queue),
        (select p.problem from pgcombine_internal.rollup_problems((rollup).queue) p limit 1))
$$;
