-- pgcombine.single(anyelement) → anyelement, aggregate
-- The one value among nulls: of every type, those without an order included.
create or replace function pgcombine.single_step(kept anyelement, next anyelement)
returns anyelement
language sql immutable strict parallel safe
as 'select $1';
create or replace aggregate pgcombine.single(anyelement) (
    sfunc = pgcombine.single_step, stype = anyelement, parallel = safe
);
