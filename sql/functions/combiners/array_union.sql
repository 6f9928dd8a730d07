-- pgcombine.array_union(a, b), aggregate pgcombine.array_union(a)
-- The elements of both arrays, each once, in order; a null array counts as an empty one, a null element is an
-- element and comes last. A row costs time in proportion to the array.
create or replace function pgcombine.array_union(a anyarray, b anyarray)
returns anyarray
language sql immutable parallel safe
as $$
    select coalesce(array_agg(distinct e order by e), '{}')
    from (select unnest(a) as e union all select unnest(b)) as elements
$$;
create or replace aggregate pgcombine.array_union(anyarray) (sfunc = pgcombine.array_union, stype = anyarray);
