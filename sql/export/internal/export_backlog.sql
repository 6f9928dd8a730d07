-- pgcombine_internal.export_backlog(export) → (entries, lag_seconds)
-- Returns the number of waiting entries and the age of the oldest in seconds, to about a second (see time_of); 0 if
-- none waits.
-- Runs with its owner's rights, for roles that may deliver the export or use its queue.
-- Errors: PC021 unknown export; 42501 the caller has no right on the export or its queue.
create or replace function pgcombine_internal.export_backlog(export text, out entries bigint,
    out lag_seconds double precision)
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _role constant name := pgcombine_internal.caller();
    _oldest bigint;
begin
    if not pgcombine_internal.has_right((pgcombine_internal.require_export(export_backlog.export)).queue,
        'use', _role) then
        perform pgcombine_internal.require_right(export_backlog.export, 'export', _role);
    end if;
    execute format('select count(*), coalesce(txid_current_if_assigned(), txid_snapshot_xmax(txid_current_snapshot())) '
        '- max(age(xmin)) from pgcombine.%I',
        export_backlog.export || '_exports')
    into export_backlog.entries, _oldest;
    export_backlog.lag_seconds := greatest(0,
        extract(epoch from clock_timestamp() - pgcombine_internal.time_of(_oldest)));
end
$$;
