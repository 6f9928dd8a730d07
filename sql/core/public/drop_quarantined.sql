-- pgcombine.drop_quarantined(queue [, key]) → bigint
-- Deletes the held updates of a quarantined key and ends its quarantine, so that later updates are combined. Returns
-- the number of deleted updates.
--   key  JSON object of the key's columns; null: all keys of the queue
-- Tables written and errors: those of quarantine_release.
create or replace function pgcombine.drop_quarantined(queue text, key jsonb default null)
returns bigint
language sql
as $$
    select pgcombine_internal.quarantine_release(drop_quarantined.queue, drop_quarantined.key, put_back => false)
$$;
