-- pgcombine.greatest(a, b), aggregate pgcombine.greatest(a)
-- Returns the greater value in the type's default order and ignores nulls. It serves types without an aggregate max.
create or replace function pgcombine.greatest(a anyelement, b anyelement)
returns anyelement
language sql immutable strict parallel safe
as $$
    select greatest(a, b)
$$;
create or replace aggregate pgcombine.greatest(anyelement) (sfunc = pgcombine.greatest, stype = anyelement);
