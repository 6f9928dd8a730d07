-- pgcombine_internal.not_held(queue) → text
-- Returns the condition that the key of a row with the queue's columns isn't quarantined.
create or replace function pgcombine_internal.not_held(queue text)
returns text
language sql stable
as $$
    select format('not exists (select from pgcombine.%I as pgcombine_held where %s)',
                  not_held.queue || '_quarantine_keys', pgcombine_internal.held_key(not_held.queue))
$$;
