-- pgcombine_internal.export_about(export) → (pending, lag_seconds)
-- Estimates the number of an export's waiting entries, from the statistics, which are some seconds old, and the age of
-- the oldest in seconds (see time_of): in each bucket the one with the least sequence.
-- Runs with its owner's rights, for roles that may deliver the export or use its queue.
-- Errors: PC021 unknown export; 42501 the caller has no right on the export or its queue.
create or replace function pgcombine_internal.export_about(export text, out pending bigint,
    out lag_seconds double precision)
language plpgsql volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _role constant name := pgcombine_internal.caller();
    _export pgcombine.export;
    _oldest bigint;
    _waiting bigint;
begin
    if not pgcombine_internal.has_right((pgcombine_internal.require_export(export_about.export)).queue,
        'use', _role) then
        perform pgcombine_internal.require_right(export_about.export, 'export', _role);
    end if;
    select e.* into _export from pgcombine.export e where e.export = export_about.export;
    execute (
        select format('select coalesce(txid_current_if_assigned(), txid_snapshot_xmax(txid_current_snapshot())) - '
            'max(a), count(*) from (%s) e (a)',
            string_agg(format('(select age(xmin) from pgcombine.%I order by seq limit 1)',
                _export.export || '_exports_b' || to_char(b, 'FM0000')), ' union all '))
        from generate_series(0, _export.buckets - 1) b)
    into _oldest, _waiting;
    if _waiting = 0 then
        pending := 0;
    else
        select greatest(_waiting,
            sum(pg_stat_get_live_tuples(to_regclass(format('pgcombine.%I',
            _export.export || '_exports_b' || to_char(b, 'FM0000'))))))
        into pending from generate_series(0, _export.buckets - 1) b;
        perform pgcombine_internal.tick();
    end if;
    lag_seconds := greatest(0, extract(epoch from clock_timestamp() - pgcombine_internal.time_of(_oldest)));
end
$$;
