-- pgcombine.quarantine_drop(queue [, key]) → bigint
-- Deletes the updates of a quarantined key (of all keys, if none is given), and what is enqueued for it from now
-- on is combined again; returns how many updates are lost.
--   key  JSON object of the key's columns
-- Tables written, errors: as quarantine_release.
create or replace function pgcombine.quarantine_drop(queue text, key jsonb default null)
returns bigint
language sql
as $$
    select pgcombine.quarantine_release(quarantine_drop.queue, quarantine_drop.key, put_back => false)
$$;
