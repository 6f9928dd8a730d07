-- pgcombine_internal.export_sweep(export) → bigint
-- Returns the epoch of the export's full state (see own_export) when none of its entries waits or is quarantined any
-- more. Null: some still do, there is no full state, or its sweep is done. The sweep: the exporter marks as deleted the
-- keys that the destination has only from earlier epochs. The query export_swept records that this is done.
-- Errors: PC021 unknown export.
create or replace function pgcombine_internal.export_sweep(export text)
returns bigint
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(export_sweep.export);
    _left boolean;
begin
    if _export.sweep is null then
        return null;
    end if;
    execute format('select exists (select from pgcombine.%I where seq <= $1)', _export.export || '_exports')
    into _left using _export.sweep;
    -- the sweep would delete the key of a quarantined entry, since the key's row at the destination is from an earlier
    -- epoch
    return case when not _left and not exists (select from pgcombine.export_quarantine q
        where q.export = _export.export and q.seq <= _export.sweep and q.since > '-infinity') then _export.epoch end;
end
$$;
