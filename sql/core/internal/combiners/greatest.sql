-- pgcombine_internal.greatest(a, b), aggregate pgcombine_internal.greatest(a)
-- Returns the greater value in the type's default order and ignores nulls. It serves types without an aggregate max.
create or replace function pgcombine_internal.greatest(a anyelement, b anyelement)
returns anyelement
language sql immutable strict parallel safe
as $$
    select greatest(a, b)
$$;
create or replace aggregate pgcombine_internal.greatest(anyelement) (sfunc = pgcombine_internal.greatest,
    stype = anyelement);
