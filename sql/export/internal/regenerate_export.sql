-- pgcombine_internal.regenerate_export(export)
-- Makes the wake-up trigger of an export, or replaces it. The trigger notifies the channel 'pgcombine.export <export>'.
-- Since the name has a space, it can't be the channel of a queue.
-- Errors: PC021 unknown export.
create or replace function pgcombine_internal.regenerate_export(export text)
returns void
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(regenerate_export.export);
begin
    execute format('create or replace trigger pgcombine_wake after insert on pgcombine.%I
                    for each statement execute function pgcombine_internal.wake(%L)',
        _export.export || '_exports', 'export ' || _export.export);
end
$$;
