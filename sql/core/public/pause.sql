-- pgcombine.pause(queue)
-- Pauses a queue: no new pass runs over it. Enqueues continue, and a running pass ends normally.
-- Tables written: pgcombine.queue.
-- Errors: PC001 unknown queue; 42501 the caller lacks the right work.
create or replace function pgcombine.pause(queue text)
returns void
language sql
as $$
    select pgcombine_internal.require_right(queue, 'work');
    update pgcombine.queue q set paused = true where q.queue = pause.queue and q.paused <> true;
$$;
