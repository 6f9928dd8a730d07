-- pgcombine_internal.own_export(export, owner [, epoch]) → bigint
-- Makes this server deliver an export that several servers may have, each for its copy of the queue. Returns the
-- export's new epoch.
-- Waiting and quarantined entries are replaced with an entry for each key that has a value, since the former owner ran
-- other passes. The destination is up again, unless it is paused.
-- After these entries the exporter marks the destination's other keys as deleted, if it can (export_sweep).
-- Sequences start at epoch * 2^40. So a receiver that keeps the highest sequence of each key, or accepts only the
-- highest epoch, ignores the former owner.
--   owner  this server's name among these servers; null: no other server has the export
--   epoch  lower bound of the new epoch: higher than any epoch that the destination has seen
-- The call waits for passes and deliveries in progress.
-- Tables written: export, export_quarantine, <export>_exports, observer, queue, bucket, destination_state.
-- Errors: PC021 unknown export; 42501 the caller doesn't own the schema; those of claim_deliveries.
create or replace function pgcombine_internal.own_export(export text, owner text, epoch bigint default 0)
returns bigint
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.claim_deliveries(
        own_export.export, format('handover of export "%s"', own_export.export));
    _epoch constant bigint := greatest(_export.epoch + 1, own_export.epoch);
    _sweep bigint;
begin
    delete from pgcombine.export_quarantine q where q.export = _export.export; -- a full state follows
    execute format($alter$alter table pgcombine.%I alter column seq
        set default nextval('pgcombine.export_sequence') + %s$alter$,
        _export.export || '_exports', _epoch * 1099511627776);
    perform pgcombine_internal.start_export(_export.export, existing => true);
    select nextval('pgcombine.export_sequence') + _epoch * 1099511627776 into _sweep;
    update pgcombine.export e set owner = own_export.owner, epoch = _epoch, sweep = _sweep
        where e.export = _export.export;
    perform pgcombine_internal.resume_destination('export', d.name) from pgcombine.destination d
    where d.kind = 'export' and d.name = _export.export and d.state <> 'paused';
    return _epoch;
end
$$;
