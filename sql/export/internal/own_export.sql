-- pgcombine_internal.own_export(export, owner [, epoch]) → bigint
-- Makes this server deliver an export that several servers may have, each for its copy of the queue. Returns the
-- export's new epoch.
-- Waiting and quarantined entries are replaced with a full state, since the former owner ran other passes. The
-- destination is up again, unless it is paused.
-- After the full state the exporter marks the destination's other keys as deleted, if it can (query export_sweep).
-- Sequences start at epoch * 2^40. So a receiver that keeps the highest sequence of each key, or accepts only the
-- highest epoch, ignores the former owner.
--   owner  this server's name among these servers; null: no other server has the export
--   epoch  lower bound of the new epoch: higher than any epoch that the destination has seen
-- The call waits for passes and deliveries in progress.
-- Tables written: export, export_bucket, export_entry, destination_state; those of keep_changes.
-- Errors: PC021 unknown export; 42501 the caller doesn't own the schema; those of claim_deliveries.
create or replace function pgcombine_internal.own_export(export text, owner text, epoch bigint default 0)
returns bigint
language plpgsql
as $$
declare
    _export pgcombine.export := pgcombine_internal.claim_deliveries(
        own_export.export, format('handover of export "%s"', own_export.export));
begin
    delete from pgcombine.export_entry q where q.export = _export.export;
    update pgcombine.export e
    set owner = own_export.owner, epoch = greatest(_export.epoch + 1, own_export.epoch), sweep = true
    where e.export = _export.export
    returning * into _export;
    perform pgcombine_internal.start_export(_export, full_state => true);
    perform pgcombine_internal.resume_destination('export', d.name) from pgcombine.destination d
    where d.kind = 'export' and d.name = _export.export and d.state <> 'paused';
    return _export.epoch;
end
$$;
