-- pgcombine.pause_export(export [, reason])
-- Pauses an export: workers deliver nothing until it is resumed, and its entries are kept. A delivery in progress isn't
-- stopped.
-- Tables written: pgcombine.destination_state.
-- Errors: PC021 unknown export; 42501 the caller lacks the right work.
create or replace function pgcombine.pause_export(export text, reason text default null)
returns void
language plpgsql
as $$
begin
    perform pgcombine_internal.pause_destination('export',
        (pgcombine_internal.require_export(pause_export.export)).export, pause_export.reason);
end
$$;
