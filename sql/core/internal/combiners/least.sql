-- pgcombine_internal.least(a, b), aggregate pgcombine_internal.least(a)
-- Returns the lesser value in the type's default order and ignores nulls. It serves types without an aggregate min.
create or replace function pgcombine_internal.least(a anyelement, b anyelement)
returns anyelement
language sql immutable strict parallel safe
as $$
    select least(a, b)
$$;
create or replace aggregate pgcombine_internal.least(anyelement) (sfunc = pgcombine_internal.least, stype = anyelement);
