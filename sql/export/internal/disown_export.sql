-- pgcombine_internal.disown_export(export, owner, epoch) → boolean
-- Records that another server owns the export from an epoch on, and returns true. The export's waiting and quarantined
-- entries are deleted here, since the owner delivers every key. Passes here keep no changes for the export until
-- own_export is called.
-- If this server knows of a later epoch, or of another owner of the same epoch, the function changes nothing, and
-- returns false.
-- The call waits for passes and deliveries in progress.
-- Tables written: export, export_bucket, export_entry, destination_state; those of forget_changes.
-- Errors: PC021 unknown export; those of claim_deliveries and forget_changes.
create or replace function pgcombine_internal.disown_export(export text, owner text, epoch bigint)
returns boolean
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.claim_deliveries(
        disown_export.export, format('handover of export "%s"', disown_export.export));
begin
    if _export.epoch > disown_export.epoch
        or (_export.epoch = disown_export.epoch and _export.owner is distinct from disown_export.owner) then
        return false;
    end if;
    update pgcombine.export e set owner = disown_export.owner, epoch = disown_export.epoch, sweep = false
    where e.export = _export.export;
    perform pgcombine_internal.stop_export(_export);
    -- no attempt follows that could end a failure
    perform pgcombine_internal.resume_destination('export', d.name) from pgcombine.destination d
    where d.kind = 'export' and d.name = _export.export and d.state <> 'paused';
    return true;
end
$$;
