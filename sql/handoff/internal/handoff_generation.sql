-- pgcombine_internal.handoff_generation(queue, shape) → integer
-- Returns the generation of the queue with this shape: the number of replicated queues of this name that were dropped
-- before. All servers have the same number once a queue is dropped on all of them. The generation keeps hints of a
-- dropped queue out of the new one. Null: the shape belongs to a definition that the queue doesn't have here.
--   shape  see handoff_shape
create or replace function pgcombine_internal.handoff_generation(queue text, shape uuid)
returns integer
language sql stable
as $$
    select (('x' || right(handoff_generation.shape::text, 8))::bit(32)::integer
            # ('x' || right(o.shape::text, 8))::bit(32)::integer # coalesce(g.generation, 0))
    from (select pgcombine_internal.handoff_shape(handoff_generation.queue) as shape) o
    left join pgcombine.handoff_queue g on g.queue = handoff_generation.queue
    where left(o.shape::text, 28) = left(handoff_generation.shape::text, 28)
$$;
