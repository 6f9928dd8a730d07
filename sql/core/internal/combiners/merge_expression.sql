-- pgcombine_internal.merge_expression(column, old, new) → text
-- Returns the expression that combines a value column of two rows, either of which may be null.
--   old, new  aliases of the rows
create or replace function pgcombine_internal.merge_expression("column" pgcombine.queue_column, old text, new text)
returns text
language plpgsql stable
as $$
declare
    _column constant pgcombine.queue_column := "column";
begin
    if _column.ordered_by is null then
        return (select pgcombine_internal.expand(k.merge, format('%s.%I', old, _column.name),
            format('%s.%I', new, _column.name), _column.type)
                from pgcombine.combiner k where k.combiner = _column.combiner);
    end if;
    return (
        select format('(select b.%I from (values (%s), (%s)) as b(%s) order by %s limit 1)', _column.name,
            string_agg(format('%s.%I', old, c.name), ', ' order by c.position),
            string_agg(format('%s.%I', new, c.name), ', ' order by c.position),
            string_agg(quote_ident(c.name), ', ' order by c.position),
            pgcombine_internal.order_expression(_column.queue, _column.ordered_by))
        from pgcombine.queue_column c
        where c.queue = _column.queue and _column.ordered_by in (c.name, c.ordered_by));
end
$$;
