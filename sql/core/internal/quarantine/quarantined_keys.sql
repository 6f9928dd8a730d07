-- pgcombine_internal.quarantined_keys(queue) → text
-- Returns <queue>_quarantine_keys as a from item with the alias pgcombine_quarantined. It renames the key columns by
-- position (pgcombine_0), so that names in the condition of key_is_quarantined are those of the caller's row.
create or replace function pgcombine_internal.quarantined_keys(queue text)
returns text
language sql stable
as $$
    select format('pgcombine.%I as pgcombine_quarantined (%s, pgcombine_key)',
        quarantined_keys.queue || '_quarantine_keys',
        pgcombine_internal.column_list(quarantined_keys.queue, 'key', 'pgcombine_{position}'))
$$;
