-- pgcombine_internal.handoff_generation(queue, shape) → integer
-- Returns the generation of the queue with this shape: how many replicated queues of its name were dropped before it.
-- The servers count alike, since a queue is dropped on all of them. So the hints of a dropped queue aren't taken for
-- its successor's. Null: the shape is of another definition than the queue has here.
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
