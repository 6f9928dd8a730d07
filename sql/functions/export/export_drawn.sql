-- pgcombine.export_drawn(export) → bigint
-- The highest sequence number that an entry of the export has had so far, or more. Null: the caller may not know.
-- Errors: PC021 unknown export.
create or replace function pgcombine.export_drawn(export text)
returns bigint
language sql volatile
as $$
    select (pgcombine.require_export(export_drawn.export)).epoch * 1099511627776
           + case when has_sequence_privilege('pgcombine.export_sequence', 'select')
                  then coalesce(pg_sequence_last_value('pgcombine.export_sequence'), 0) end
$$;
