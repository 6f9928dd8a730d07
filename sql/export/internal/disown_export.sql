-- pgcombine_internal.disown_export(export, owner, epoch) → boolean
-- Records that another server owns the export from an epoch on, and returns true. The export's waiting and quarantined
-- entries are deleted here, since the owner delivers every key. Passes here write no entries until own_export is
-- called.
-- If this server knows of a later epoch, or of another owner of the same epoch, the function changes nothing, and
-- returns false.
-- The call waits for passes and deliveries in progress.
-- Tables written: export, export_quarantine, <export>_exports, observer, queue, bucket, destination_state.
-- Errors: PC021 unknown export; those of claim_deliveries.
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
    if exists (select from pgcombine.observer o where o.queue = _export.queue
        and o.observer = 'export ' || _export.export) then
        perform pgcombine.drop_observer(_export.queue, 'export ' || _export.export);
    end if;
    delete from pgcombine.export_quarantine q where q.export = _export.export;
    execute format('delete from pgcombine.%I', _export.export || '_exports');
    update pgcombine.export e set owner = disown_export.owner, epoch = disown_export.epoch, sweep = null
    where e.export = _export.export;
    -- no attempt follows that could end a failure
    perform pgcombine_internal.resume_destination('export', d.name) from pgcombine.destination d
    where d.kind = 'export' and d.name = _export.export and d.state <> 'paused';
    return true;
end
$$;
