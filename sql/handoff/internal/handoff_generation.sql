-- pgcombine_internal.handoff_generation(queue, shape) → integer
-- Returns the generation of a queue with this shape: the number of replicated queues of this name that were dropped
-- before. The generation keeps writes of a dropped queue out of the new one. Null: the shape belongs to another
-- definition than the queue has here, or the queue is missing here.
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
