-- pgcombine_internal.export_backlog(export [, exact]) → (entries, lag_seconds)
-- Returns the number of waiting entries and the age of the oldest in seconds, to about a second (see time_of); 0 if
-- none waits.
--   exact  false: the number is an estimate from the statistics, which are some seconds old, and the age considers only
--          the entry with the least sequence in each bucket
-- Runs with its owner's rights, for roles that monitor or work.
-- Tables written: pgcombine.tick, if exact is false.
-- Errors: PC021 unknown export; 42501 the caller lacks the right monitor.
create or replace function pgcombine_internal.export_backlog(export text, exact boolean default true,
    out entries bigint, out lag_seconds double precision)
language plpgsql volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _export pgcombine.export;
    _tables text[];
    _oldest bigint;
begin
    perform pgcombine_internal.require_right(null, 'monitor', pgcombine_internal.caller());
    _export := pgcombine_internal.require_export(export_backlog.export);
    _tables := array(
        select format('pgcombine.%I', _export.export || '_exports_b' || to_char(b, 'FM0000'))
        from generate_series(0, _export.buckets - 1) b);
    execute format('select count(*), coalesce(txid_current_if_assigned(), txid_snapshot_xmax(txid_current_snapshot())) '
        '- max(age(e.xmin)) from (%s) e',
        case when exact then format('select xmin from pgcombine.%I', _export.export || '_exports')
            else (select string_agg(format('(select xmin from %s order by seq limit 1)', t), ' union all ')
                  from unnest(_tables) t) end)
    into entries, _oldest;
    if entries > 0 and not exact then
        select greatest(entries, sum(pg_stat_get_live_tuples(t::regclass))) into entries from unnest(_tables) t;
        perform pgcombine_internal.tick();
    end if;
    lag_seconds := greatest(0, extract(epoch from clock_timestamp() - pgcombine_internal.time_of(_oldest)));
end
$$;
