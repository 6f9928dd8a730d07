-- pgcombine_internal.begin_handover(export) → pgcombine.export
-- First step of own_export and disown_export: claims passes and deliveries (see claim_deliveries). Quarantined entries
-- are deleted, since a full state follows, from this server or from another one.
-- Tables written: bucket, export_quarantine.
-- Errors: those of claim_deliveries.
create or replace function pgcombine_internal.begin_handover(export text)
returns pgcombine.export
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.claim_deliveries(begin_handover.export, format('handover of export "%s"', begin_handover.export));
begin
    delete from pgcombine.export_quarantine q where q.export = _export.export;
    return _export;
end
$$;
