-- pgcombine.regenerate_export(export)
-- Makes anew what is generated for an export: its wake-up trigger. Its gate (see asleep) and its channel have the name
-- 'export ' and that of the export, which no queue can have.
-- Errors: PC021 unknown export.
create or replace function pgcombine.regenerate_export(export text)
returns void
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine.require_export(regenerate_export.export);
begin
    execute format('create or replace trigger pgcombine_wake after insert on pgcombine.%I
                    for each statement execute function pgcombine.wake(%L)', _export.export || '_exports', 'export ' || _export.export);
end
$$;
