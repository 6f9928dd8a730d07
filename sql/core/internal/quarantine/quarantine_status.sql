-- pgcombine_internal.quarantine_status(queue) → (quarantined_keys, held_updates, failing_buckets)
-- Returns the numbers of a queue's quarantined keys, of its held updates, and of buckets whose last pass failed. The
-- view status shows them for every queue.
-- Runs with its owner's rights, for roles with any right on the queue.
-- Errors: PC001 unknown queue; 42501 the caller has no right on the queue.
create or replace function pgcombine_internal.quarantine_status(queue text, out quarantined_keys bigint,
    out held_updates bigint,
    out failing_buckets bigint)
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.require_right(quarantine_status.queue, 'use', pgcombine_internal.caller());
    select count(*), coalesce(sum(k.updates), 0) into quarantined_keys, held_updates
    from pgcombine.quarantined_key k where k.queue = quarantine_status.queue;
    select count(*) into failing_buckets from pgcombine.failure f where f.queue = quarantine_status.queue;
end
$$;
