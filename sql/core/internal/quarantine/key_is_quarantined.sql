-- pgcombine_internal.key_is_quarantined(queue) → text
-- Returns a condition in SQL: a row has the same key as pgcombine_quarantined, the from item of quarantined_keys.
create or replace function pgcombine_internal.key_is_quarantined(queue text)
returns text
language sql stable
as $$
    select pgcombine_internal.column_list(key_is_quarantined.queue, 'key',
        'pgcombine_quarantined.pgcombine_{position} {equals} {name}', ' and ')
$$;
