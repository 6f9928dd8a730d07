-- pgcombine.quarantine_retry(queue [, key]) → bigint
-- Ends the quarantine of a key and makes its held updates pending again; returns their number.
--   key  JSON object of the key's columns; null: all keys of the queue
-- Tables written and errors: those of quarantine_release.
create or replace function pgcombine.quarantine_retry(queue text, key jsonb default null)
returns bigint
language sql
as $$
    select pgcombine_internal.quarantine_release(quarantine_retry.queue, quarantine_retry.key, put_back => true)
$$;
