-- pgcombine.export_backlog(export) → (entries, lag_seconds)
-- How many entries wait, and the age of the oldest in seconds, to about a second (see time_of); 0 if none waits.
-- Errors: PC021 unknown export.
create or replace function pgcombine.export_backlog(export text, out entries bigint, out lag_seconds double precision)
language plpgsql stable
as $$
declare
    _oldest integer;
begin
    execute format('select count(*), max(age(xmin)) from pgcombine.%I',
        (pgcombine.require_export(export_backlog.export)).export || '_exports')
    into export_backlog.entries, _oldest;
    export_backlog.lag_seconds := case when export_backlog.entries > 0
        then greatest(0, extract(epoch from clock_timestamp() - coalesce(pgcombine.time_of(_oldest), clock_timestamp()))) else 0 end;
end
$$;
