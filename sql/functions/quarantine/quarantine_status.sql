-- pgcombine.quarantine_status(queue) → (quarantined_keys, held_updates, failing_buckets)
-- How many keys of a queue are quarantined and how many of their updates are held, and how many buckets failed in
-- their last pass. The view status has these figures of every queue.
create or replace function pgcombine.quarantine_status(queue text, out quarantined_keys bigint, out held_updates bigint,
    out failing_buckets bigint)
language sql stable
as $$
    select count(*), coalesce(sum(k.updates), 0)::bigint,
           (select count(*) from pgcombine.failure f where f.queue = quarantine_status.queue)
    from pgcombine.quarantine k where k.queue = quarantine_status.queue
$$;
