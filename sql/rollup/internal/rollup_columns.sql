-- pgcombine_internal.rollup_columns(rollup) → (place, name, number), a row for each column
-- Returns the columns of a rollup's source that the rollup's expressions read: for each its place in the view
-- <queue>_source, the name that it had when the rollup was made, and its number now. The view keeps this name when the
-- column is renamed, and refers to the column also in a restored dump, which may number columns differently.
create or replace function pgcombine_internal.rollup_columns(rollup pgcombine.rollup)
returns table (place integer, name name, number integer)
language sql stable
set search_path = pg_catalog, pg_temp
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
    select c.place::integer, a.attname, c.origin[1]::integer
    from pg_rewrite w
    cross join regexp_matches(w.ev_action::text, ':resorigtbl \d+ :resorigcol (\d+)', 'g')
        with ordinality c (origin, place)
    join pg_attribute a on a.attrelid = w.ev_class and a.attnum = c.place
    where w.ev_class = to_regclass(format('pgcombine.%I', (rollup).queue || '_source'))
$$;
