-- pgcombine.packs(queue) → boolean
-- Whether enqueues may pack several updates of a bucket into one row (see enqueue_function): the table of updates
-- has the columns for it, and its buckets are as create_tables wants them for it.
create or replace function pgcombine.packs(queue text)
returns boolean
language sql stable
as $$
    select q.partitions = q.buckets and q.buckets <= 64 and exists (
        select from pg_attribute a
        where a.attrelid = format('pgcombine.%I', q.queue || '_updates')::regclass and a.attname = 'pgcombine_packed')
    from pgcombine.queue q
    where q.queue = packs.queue
$$;
