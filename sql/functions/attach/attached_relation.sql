-- pgcombine.attached_relation(source, relation) → text
-- What to read the rows of a table from where triggers see them. There its virtual generated columns are null, so
-- the expressions that generate them stand in for them.
--   relation  an item of a from clause with the columns of source, without its alias
create or replace function pgcombine.attached_relation(source regclass, relation text)
returns text
language sql stable
as $$
    select case when bool_or(a.attgenerated = 'v')
        then format('(select %s from %s as pgcombine_row)', string_agg(
            case when a.attgenerated = 'v' then format('(%s) as %I', pg_get_expr(d.adbin, d.adrelid), a.attname)
                 else quote_ident(a.attname) end, ', ' order by a.attnum), attached_relation.relation)
        else attached_relation.relation end
    from pg_attribute a
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = attached_relation.source and a.attnum > 0 and not a.attisdropped
$$;
