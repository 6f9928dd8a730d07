-- pgcombine.quarantine_retry(queue [, key]) → bigint
-- Puts the updates of a quarantined key (of all keys, if none is given) back as pending; returns how many.
--   key  JSON object of the key's columns
-- Tables written, errors: as quarantine_release.
create or replace function pgcombine.quarantine_retry(queue text, key jsonb default null)
returns bigint
language sql
as $$
    select pgcombine.quarantine_release(quarantine_retry.queue, quarantine_retry.key, put_back => true)
$$;
