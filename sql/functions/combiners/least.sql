-- pgcombine.least(a, b), aggregate pgcombine.least(a)
-- Returns the lesser value in the type's default order and ignores nulls. It serves types without an aggregate min.
create or replace function pgcombine.least(a anyelement, b anyelement)
returns anyelement
language sql immutable strict parallel safe
as $$
    select least(a, b)
$$;
create or replace aggregate pgcombine.least(anyelement) (sfunc = pgcombine.least, stype = anyelement);
