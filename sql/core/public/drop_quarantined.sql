-- pgcombine.drop_quarantined(queue [, key]) → bigint
-- Deletes the quarantined updates of a quarantined key and ends its quarantine, so that later updates are combined.
-- Returns the number of deleted updates.
--   key  JSON object of the key's columns; null: all keys of the queue
-- Tables written: those of quarantine_release.
-- Errors: PC001 unknown queue; PC004 the key isn't an object of the key columns, or its values don't fit their types;
-- PC009 the key isn't quarantined; 40001 the isolation level isn't read committed, and keys were quarantined or buckets
-- changed since the snapshot; 42501 the caller lacks the right work.
create or replace function pgcombine.drop_quarantined(queue text, key jsonb default null)
returns bigint
language sql
as $$
    select pgcombine_internal.quarantine_release(drop_quarantined.queue, drop_quarantined.key, put_back => false)
$$;
