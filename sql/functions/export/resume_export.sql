-- pgcombine.resume_export(export)
-- Entries are delivered again, at once, also where the destination was down.
-- Tables written: pgcombine.destination_state.
-- Errors: PC021 unknown export.
create or replace function pgcombine.resume_export(export text)
returns void
language plpgsql
as $$
begin
    perform pgcombine.resume_destination('export', (pgcombine.require_export(resume_export.export)).export);
end
$$;
