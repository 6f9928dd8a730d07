-- pgcombine_internal.columns_of(queue) → jsonb
-- Returns a queue's columns in order, each an object: name, role, type, collation, combiner, ordered_by, and initial,
-- the default of an update.
create or replace function pgcombine_internal.columns_of(queue text)
returns jsonb
language sql stable
as $$
    select jsonb_agg(to_jsonb(c) - '{queue,position}'::text[] || jsonb_build_object('initial', k.initial)
                     order by c.position)
    from pgcombine.queue_column c left join pgcombine.combiner k using (combiner)
    where c.queue = columns_of.queue
$$;
