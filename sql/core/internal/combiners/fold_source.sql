-- pgcombine_internal.fold_source(queue, updates) → text
-- Returns the from item that fold_expression reads: the updates or, where last or first are among the combiners, the
-- updates with a flag on each key's last or first row.
--   updates  a from item
create or replace function pgcombine_internal.fold_source(queue text, updates text)
returns text
language sql stable
as $$
    select case when count(*) = 0 then updates else format('(select *, %s from %s) as marked', string_agg(
        format('row_number() over (partition by %s order by %s) operator(pg_catalog.=) 1 as pgcombine_chosen_%s',
            pgcombine_internal.column_list($1, 'key'), pgcombine_internal.order_expression(o.queue, o.name),
            o.position), ', ' order by o.position), updates) end
    from pgcombine.queue_column o
    where o.queue = $1
      and exists (select from pgcombine.queue_column c where c.queue = o.queue and c.ordered_by = o.name)
$$;
