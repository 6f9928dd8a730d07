-- pgcombine.resume(queue)
-- Resumes a paused queue and wakes its workers. They try its failing buckets again at once, also if it wasn't paused.
-- Tables written: pgcombine.queue, failure.
-- Errors: PC001 unknown queue; 42501 the caller lacks the right work.
create or replace function pgcombine.resume(queue text)
returns void
language sql
as $$
    select pgcombine_internal.require_right(queue, 'work');
    update pgcombine.queue q set paused = false where q.queue = resume.queue and q.paused <> false;
    update pgcombine.failure f set retry_at = clock_timestamp()
        where f.queue = resume.queue and f.retry_at > clock_timestamp();
    select pg_notify('pgcombine.' || queue, '');
$$;
