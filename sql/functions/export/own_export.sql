-- pgcombine.own_export(export, owner [, epoch]) → bigint
-- From now on this server delivers an export that several servers have, each for its own copy of the queue; owner is
-- this server's name among them (null: there is but one). It begins a new epoch, which it returns, and anew: what
-- waited is replaced by an entry for each key that has a value, since the passes of the former owner were others; what
-- the destination has of other keys is deleted then, where the exporter can (sweep). Sequences start at
-- epoch * 2^40: whoever keeps the highest of a key, or obeys the highest epoch, ignores the former owner.
--   epoch  at least this one: higher than any that the destination has seen
-- Waits for the passes and deliveries that run. Tables written: export, export_quarantine, <export>_exports, observer,
-- queue, bucket, destination_state.
-- Errors: PC021 unknown export.
create or replace function pgcombine.own_export(export text, owner text, epoch bigint default 0)
returns bigint
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine.require_export(own_export.export);
    _epoch constant bigint := greatest(_export.epoch + 1, own_export.epoch);
    _sweep bigint;
begin
    perform pgcombine.begin_handover(_export.export, _export.queue);
    execute format($alter$alter table pgcombine.%I alter column seq set default nextval('pgcombine.export_sequence') + %s$alter$,
        _export.export || '_exports', _epoch * 1099511627776);
    if not exists (select from pgcombine.observer o where o.queue = _export.queue and o.observer = 'export ' || _export.export) then
        perform pgcombine.observe_export(_export.export);
    end if;
    perform pgcombine.export_existing(_export.export);
    select nextval('pgcombine.export_sequence') + _epoch * 1099511627776 into _sweep;
    update pgcombine.export e set owner = own_export.owner, epoch = _epoch, sweep = _sweep where e.export = _export.export;
    if exists (select from pgcombine.destination d where d.kind = 'export' and d.name = _export.export and d.state <> 'paused') then
        perform pgcombine.resume_destination('export', _export.export);
    end if;
    return _epoch;
end
$$;
