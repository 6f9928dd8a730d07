-- pgcombine_internal.key_is_quarantined(queue) → text
-- Returns the condition that a row of <queue>_quarantine_keys, as pgcombine_quarantined, has the key of a row with the
-- queue's columns.
create or replace function pgcombine_internal.key_is_quarantined(queue text)
returns text
language sql stable
as $$
    select pgcombine_internal.column_list(key_is_quarantined.queue, 'key',
        'pgcombine_quarantined.pgcombine_{position} {equals} {name}', ' and ')
$$;
