-- pgcombine_internal.rollup_relation(rollup, relation) → text
-- Returns a from item that yields rows of a rollup's source under the column names that the rollup's expressions use,
-- even if columns were renamed since. Virtual generated columns are null in transition tables, so the item computes
-- them.
--   relation  a from item with the columns of the source, without its alias
create or replace function pgcombine_internal.rollup_relation(rollup pgcombine.rollup, relation text)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select format('(select %s from %s as pgcombine_row) as %I', string_agg(
        case when a.attgenerated = 'v' then format('(%s)::%s', pgcombine_internal.printed_sql(d.adrelid, d.adbin),
                 pgcombine_internal.type_name(a.atttypid, a.atttypmod))
             else quote_ident(a.attname) end || ' as ' || quote_ident(r.name), ', ' order by r.number),
        rollup_relation.relation, (rollup).definition ->> 'alias')
    from (select) one
    left join pgcombine_internal.rollup_columns(rollup) r on true
    left join pg_attribute a on a.attrelid = (rollup).source and a.attnum = r.number
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
$$;
