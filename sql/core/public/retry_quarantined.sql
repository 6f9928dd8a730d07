-- pgcombine.retry_quarantined(queue [, key]) → bigint
-- Ends the quarantine of a key and makes its quarantined updates pending again. Returns their number.
--   key  JSON object of the key's columns; null: all keys of the queue
-- Tables written: those of quarantine_release.
-- Errors: PC001 unknown queue; PC004 the key isn't an object of the key columns, or its values don't fit their types;
-- PC009 the key isn't quarantined; PC010 the queue is full (see refuse_backlog); PC012 the database is a copy in which
-- post_restore has not run yet; 40001 the isolation level isn't read committed, and keys were quarantined or buckets
-- changed since the snapshot; 42501 the caller lacks the right work.
create or replace function pgcombine.retry_quarantined(queue text, key jsonb default null)
returns bigint
language sql
as $$
    select pgcombine_internal.quarantine_release(retry_quarantined.queue, retry_quarantined.key, put_back => true)
$$;
