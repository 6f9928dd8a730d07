-- pgcombine.resume_export(export)
-- Resumes an export: workers deliver its entries at once, even if the destination was down.
-- Tables written: pgcombine.destination_state.
-- Errors: PC021 unknown export; 42501 the caller lacks the right work.
create or replace function pgcombine.resume_export(export text)
returns void
language plpgsql
as $$
begin
    perform pgcombine_internal.resume_destination('export',
        (pgcombine_internal.require_export(resume_export.export)).export);
end
$$;
