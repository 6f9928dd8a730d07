-- pgcombine.quarantine_status(queue) → (quarantined_keys, held_updates, failing_buckets)
-- How many keys of a queue are quarantined and how many of their updates are held, and how many buckets failed in
-- their last pass. The view status has these figures of every queue.
-- Runs with its owner's rights, for who may use the queue in any way.
-- Errors: PC001 unknown queue; 42501 the caller may not use it.
create or replace function pgcombine.quarantine_status(queue text, out quarantined_keys bigint, out held_updates bigint,
    out failing_buckets bigint)
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine.require_right(quarantine_status.queue, 'use', pgcombine.caller());
    select count(*), coalesce(sum(k.updates), 0) into quarantined_keys, held_updates
    from pgcombine.quarantined_key k where k.queue = quarantine_status.queue;
    select count(*) into failing_buckets from pgcombine.failure f where f.queue = quarantine_status.queue;
end
$$;
