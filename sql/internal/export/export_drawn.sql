-- pgcombine_internal.export_drawn(export) → bigint
-- Returns a number that no entry's sequence has exceeded so far; null: the caller may not read the sequence.
-- Errors: PC021 unknown export.
create or replace function pgcombine_internal.export_drawn(export text)
returns bigint
language sql volatile
as $$
    select (pgcombine_internal.require_export(export_drawn.export)).epoch * 1099511627776
           + case when has_sequence_privilege('pgcombine.export_sequence', 'select')
                  then coalesce(pg_sequence_last_value('pgcombine.export_sequence'), 0) end
$$;
