-- pgcombine.drop_export(export [, force])
-- Drops an export and its destination's state. Delivered entries stay at the destination.
--   force  whether to drop the export although entries wait or are quarantined; these entries are lost
-- The call waits for running passes and deliveries.
-- Tables written: export, export_bucket, export_entry, destination_state; those of forget_changes.
-- Errors: PC021 unknown export; without force: PC005 entries wait or are quarantined, PC003 the isolation level isn't
-- read committed; with force: 40001 another session has changed the queue since the snapshot; 42501 the
-- caller doesn't own the schema.
create or replace function pgcombine.drop_export(export text, force boolean default false)
returns void
language plpgsql
as $$
declare
    _export pgcombine.export;
    _entries bigint;
begin
    perform pgcombine_internal.require_owner();
    _export := pgcombine_internal.claim_deliveries(drop_export.export,
        -- an older snapshot may miss entries
        case when drop_export.force then null else format('drop of export "%s"', drop_export.export) end);
    if not drop_export.force then
        select (pgcombine_internal.export_backlog(_export.export)).entries + count(*) into _entries
        from pgcombine.export_entry q where q.export = _export.export and q.error is not null;
    end if;
    perform pgcombine_internal.require(_entries = 0 or drop_export.force, 'PC005',
        format('export "%s" has %s entries that wait or are quarantined', _export.export, _entries),
        'deliver them first (pgcombine export run --drain), or pass force => true to lose them');
    perform pgcombine_internal.stop_export(_export);
    delete from pgcombine.export e where e.export = _export.export;
    delete from pgcombine.destination_state d where d.kind = 'export' and d.name = _export.export;
end
$$;
