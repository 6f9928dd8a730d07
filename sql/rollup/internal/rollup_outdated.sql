-- pgcombine_internal.rollup_outdated(rollup) → boolean
-- Returns whether generate_rollup would change a rollup's objects: something that its expressions name was renamed, or
-- its source has a new owner. False if the source or its expressions are lost.
create or replace function pgcombine_internal.rollup_outdated(rollup pgcombine.rollup)
returns boolean
language sql stable
as $$
    select exists (
        select from pg_class c
        join pg_proc p on p.pronamespace = 'pgcombine_internal'::regnamespace
            and p.proname = (rollup).queue || '_rollup'
        join pgcombine.queue q on q.queue = (rollup).queue
        where c.oid = (rollup).source and (rollup).definition is not null
          and (c.relowner <> p.proowner or p.prosrc <> pgcombine_internal.rollup_trigger(rollup)
               or q.computed ->> 'query' <> pgcombine_internal.rollup_computed(rollup)))
$$;
