-- pgcombine_internal.uncounted(queue, bucket) → boolean
-- Returns whether the queue has a maximum backlog, and the statistics can't show how many rows were inserted since the
-- bucket's last pass (see counted_since). If so, the trigger refuse_backlog counts the pending updates.
create or replace function pgcombine_internal.uncounted(queue text, bucket integer)
returns boolean
language sql stable
as $$
    select q.max_backlog is not null and (
        select p.inserted is null or p.began <= pgcombine_internal.counted_since()
        from pgcombine.pass p where p.queue = q.queue and p.bucket = uncounted.bucket order by p.pass desc limit 1)
    from pgcombine.queue q where q.queue = uncounted.queue
$$;
