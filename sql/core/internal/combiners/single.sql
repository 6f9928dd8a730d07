-- pgcombine_internal.single(anyelement) → anyelement, aggregate
-- Returns the only value among nulls, for every type, including those without an order.
create or replace function pgcombine_internal.single_step(kept anyelement, next anyelement)
returns anyelement
language sql immutable strict parallel safe
as 'select $1';
create or replace aggregate pgcombine_internal.single(anyelement) (
    sfunc = pgcombine_internal.single_step, stype = anyelement, parallel = safe
);
