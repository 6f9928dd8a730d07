-- pgcombine_internal.require_source(rollup)
-- Raises unless a rollup's source, and all of the source's columns that the rollup's expressions read, still exist.
-- Errors: PC003 the source, or one of these columns, was dropped.
create or replace function pgcombine_internal.require_source(rollup pgcombine.rollup)
returns void
language sql stable
as $$
    select pgcombine_internal.require((rollup).definition is not null,
        'PC003', format('rollup "%s" can''t read its source any more', (rollup).queue),
        (select p.problem from pgcombine_internal.rollup_problems((rollup).queue) p limit 1))
$$;
