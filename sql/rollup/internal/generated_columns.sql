-- pgcombine_internal.generated_columns(rollup) → (place, name, expression, changed), a row for each column
-- Returns the generated columns that a rollup reads, with their places in the view <queue>_source and their present
-- expressions.
--   changed  whether the expression isn't the one that the rollup was made with. Names may have changed
create or replace function pgcombine_internal.generated_columns(rollup pgcombine.rollup)
returns table (place integer, name name, expression text, changed boolean)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    -- a view prints the table's alias, and indents CASE more
    select c.place, a.attname, e.expression,
           regexp_replace(replace(e.expression, 'pgcombine_row.', ''), E' *\n *', E'\n', 'g')
           is distinct from regexp_replace(replace((rollup).definition -> 'generated' ->> c.place::text,
               'pgcombine_row.', ''), E' *\n *', E'\n', 'g')
    from pgcombine_internal.rollup_columns(rollup) c
    join pg_attribute a on a.attrelid = (rollup).source and a.attnum = c.number and a.attgenerated <> ''
    join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    cross join lateral btrim(pgcombine_internal.printed_sql(d.adrelid, d.adbin), E', \n') e (expression)
$$;
