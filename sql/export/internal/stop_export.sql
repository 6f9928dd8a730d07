-- pgcombine_internal.stop_export(export)
-- Ends the delivery of an export by this server, and deletes its waiting and quarantined entries. The caller has
-- claimed the export (see claim_deliveries).
-- Tables written: export_bucket, export_entry; those of forget_changes.
-- Errors: those of forget_changes.
create or replace function pgcombine_internal.stop_export(export pgcombine.export)
returns void
language plpgsql
as $$
begin
    if not pgcombine_internal.delivers((stop_export.export).export) then
        return;
    end if;
    delete from pgcombine.export_entry q where q.export = (stop_export.export).export;
    update pgcombine.export_bucket x set after = null, full_after = null where x.export = (stop_export.export).export;
    execute format('drop view pgcombine.%I', (stop_export.export).export || '_exports');
    perform pgcombine_internal.forget_changes((stop_export.export).queue);
end
$$;
