-- pgcombine_internal.order_expression(queue, ordered_by) → text
-- Returns an ORDER BY list. The first row in this order is the one that last(ordered_by) or first(ordered_by) takes.
-- Rows with equal ordered_by are ordered by the values of all columns that ordered_by orders, so that these values come
-- from the same row. Nulls come last. Values that their type considers equal (1 and 1.0), and values of types without
-- an order, are ordered as text.
create or replace function pgcombine_internal.order_expression(queue text, ordered_by text)
returns text
language sql stable
as $$
    select string_agg(concat_ws(', ',
        case when c.name = $2 or pgcombine_internal.type_operator(c.type::regtype, 5) is not null
             then format('%I %s nulls last', c.name, d.direction) end,
        case when c.name <> $2
             then format('%I::text collate pg_catalog."C" %s nulls last', c.name, d.direction) end),
        ', ' order by c.name <> $2, c.position)
    from pgcombine.queue_column c
    join pgcombine.queue_column o on o.queue = c.queue and o.name = $2
    cross join lateral (select case o.combiner when 'max' then 'desc' else 'asc' end as direction) as d
    where c.queue = $1 and $2 in (c.name, c.ordered_by)
$$;
