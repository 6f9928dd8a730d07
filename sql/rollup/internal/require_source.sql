-- pgcombine_internal.require_source(rollup)
-- Raises unless a rollup has its source and all columns of it that its expressions read.
-- Errors: PC003 the source, or one of these columns, was dropped.
create or replace function pgcombine_internal.require_source(rollup pgcombine.rollup)
returns void
language sql stable
as $$
    select pgcombine_internal.require((rollup).definition is not null,
        'PC003', format('rollup "%s" can''t read its source any more', (rollup).queue),
        (select p.problem from pgcombine_internal.rollup_problems((rollup).queue) p limit 1))
$$;
