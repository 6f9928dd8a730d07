-- pgcombine_internal.generated_columns(rollup) → (place, name, expression), a row for each column
-- Returns the generated columns that a rollup reads, with their places in the view <queue>_source and their present
-- expressions.
create or replace function pgcombine_internal.generated_columns(rollup pgcombine.rollup)
returns table (place integer, name name, expression text)
language sql stable
set search_path = pg_catalog, pg_temp
set datestyle = 'ISO'
set intervalstyle = 'postgres'
as $$
    select c.place, a.attname, pg_get_expr(d.adbin, d.adrelid)
    from pgcombine_internal.rollup_columns(rollup) c
    join pg_attribute a on a.attrelid = (rollup).source and a.attnum = c.number and a.attgenerated <> ''
    join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
$$;
