-- pgcombine.single(anyelement) → anyelement, aggregate
-- Returns the only value among nulls, for every type, including those without an order.
create or replace function pgcombine.single_step(kept anyelement, next anyelement)
returns anyelement
language sql immutable strict parallel safe
as 'select $1';
create or replace aggregate pgcombine.single(anyelement) (
    sfunc = pgcombine.single_step, stype = anyelement, parallel = safe
);
