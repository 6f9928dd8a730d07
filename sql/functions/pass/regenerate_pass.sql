-- pgcombine.regenerate_pass(queue)
-- Makes anew the statement that passes run: all of what is generated for a queue that its observers are part of.
-- Locks no table of the queue, so that observers come and go while updates are enqueued.
-- Tables written: pgcombine.queue.
create or replace function pgcombine.regenerate_pass(queue text)
returns void
language sql
as $$
    update pgcombine.queue q
    set pass = pgcombine.generate_pass(q.queue, true)
    where q.queue = regenerate_pass.queue
$$;
