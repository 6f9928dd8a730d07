-- pgcombine_internal.attached_relation(source, relation) → text
-- Returns a from item that yields the rows of a table inside of its triggers. Virtual generated columns are null there,
-- so the item computes them by their expressions.
--   relation  a from item with the columns of source, without its alias
create or replace function pgcombine_internal.attached_relation(source regclass, relation text)
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
