-- pgcombine_internal.representable(times) → boolean
-- Returns whether programs can read these times: Python has the years 1 to 9999 only, and no infinity. Nulls count.
-- Another time would stop whoever reads rows of all queues, such as status. So policies refuse it. The search path is
-- pinned for the reason given in has_right.
create or replace function pgcombine_internal.representable(variadic times timestamptz[])
returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(bool_and(t between '0002-01-01Z' and '9998-01-01Z'), true) from unnest(times) t
$$;
