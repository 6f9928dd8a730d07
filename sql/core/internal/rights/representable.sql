-- pgcombine_internal.representable(times) → boolean
-- Returns whether Python programs can read these times: Python has only the years 1 to 9999, and no infinity. The
-- bounds leave a year for time zones. Nulls count as readable. Policies refuse rows with other times. has_right says
-- why the search path is pinned.
create or replace function pgcombine_internal.representable(variadic times timestamptz[])
returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(bool_and(t between '0002-01-01Z' and '9998-01-01Z'), true) from unnest(times) t
$$;
