-- pgcombine_internal.handoff_definition(queue) → (shape, columns, keys, defaults)
-- Returns what a writer needs to know of a queue: its shape (handoff_shape), its columns in order, the number of key
-- columns, and the defaults by column name. If there is no such queue, the shape is null.
create or replace function pgcombine_internal.handoff_definition(queue text, out shape uuid, out columns text[],
    out keys integer, out defaults jsonb)
language sql stable
as $$
    select pgcombine_internal.handoff_shape(handoff_definition.queue), array_agg(c.name order by c.position),
           (count(*) filter (where c.role = 'key'))::integer,
           coalesce(jsonb_object_agg(c.name, k.initial) filter (where k.initial is not null), '{}')
    from pgcombine.queue_column c left join pgcombine.combiner k using (combiner)
    where c.queue = handoff_definition.queue
$$;
