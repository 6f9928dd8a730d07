-- pgcombine.packs(queue) → boolean
-- Whether a row of the queue's updates may hold many (see enqueue_function).
create or replace function pgcombine.packs(queue text)
returns boolean
language sql stable
as $$
    select q.packs from pgcombine.queue q where q.queue = packs.queue
$$;
