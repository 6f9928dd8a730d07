-- pgcombine_internal.key_is_quarantined(queue) → text
-- Returns the condition under which a row has the key of pgcombine_quarantined, a row of <queue>_quarantine_keys.
create or replace function pgcombine_internal.key_is_quarantined(queue text)
returns text
language sql stable
as $$
    select pgcombine_internal.column_list(key_is_quarantined.queue, 'key',
        'pgcombine_quarantined.pgcombine_{position} {equals} {name}', ' and ')
$$;
