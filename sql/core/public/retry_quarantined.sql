-- pgcombine.retry_quarantined(queue [, key]) → bigint
-- Ends the quarantine of a key and makes its held updates pending again. Returns their number.
--   key  JSON object of the key's columns; null: all keys of the queue
-- Tables written and errors: those of quarantine_release.
create or replace function pgcombine.retry_quarantined(queue text, key jsonb default null)
returns bigint
language sql
as $$
    select pgcombine_internal.quarantine_release(retry_quarantined.queue, retry_quarantined.key, put_back => true)
$$;
