-- pgcombine.resume(queue)
-- Resumes a paused queue and wakes its workers.
-- Tables written: pgcombine.queue.
-- Errors: PC001 unknown queue; 42501 the caller lacks the right work.
create or replace function pgcombine.resume(queue text)
returns void
language sql
as $$
    select pgcombine_internal.require_right(queue, 'work');
    update pgcombine.queue q set paused = false where q.queue = resume.queue and q.paused <> false;
    select pg_notify('pgcombine.' || queue, '');
$$;
