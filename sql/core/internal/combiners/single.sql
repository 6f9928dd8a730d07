-- pgcombine_internal.single(anyelement) → anyelement, aggregate
-- Returns the first value that isn't null, of any type. With order by in the call this is the least or the greatest.
create or replace function pgcombine_internal.single_step(kept anyelement, next anyelement)
returns anyelement
language sql immutable strict parallel safe
as 'select $1';
create or replace aggregate pgcombine_internal.single(anyelement) (
    sfunc = pgcombine_internal.single_step, stype = anyelement, parallel = safe
);
