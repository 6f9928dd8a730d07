-- pgcombine.pause_export(export [, reason])
-- Nothing is delivered until the export is resumed; its entries are kept. A delivery under way ends normally.
-- Tables written: pgcombine.destination_state.
-- Errors: PC021 unknown export.
create or replace function pgcombine.pause_export(export text, reason text default null)
returns void
language plpgsql
as $$
begin
    perform pgcombine.pause_destination('export', (pgcombine.require_export(pause_export.export)).export, pause_export.reason);
end
$$;
