-- pgcombine_internal.export_backlog(export) → (entries, lag_seconds)
-- Returns how much waits: the number of changes after the export's offset, of entries that wait again, and of keys that
-- a full state is still to deliver; and the age in seconds of the oldest of the changes and entries, 0 if none waits.
-- Runs with its owner's rights, for roles that monitor or work.
-- Errors: PC021 unknown export; 42501 the caller lacks the right monitor.
create or replace function pgcombine_internal.export_backlog(export text, out entries bigint,
    out lag_seconds double precision)
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _export pgcombine.export;
    _bucket record;
    _found bigint;
    _oldest timestamptz;
    _since timestamptz;
begin
    perform pgcombine_internal.require_right(null, 'monitor', pgcombine_internal.caller());
    _export := pgcombine_internal.require_export(export_backlog.export);
    select count(*), min(q.since) into entries, _oldest
    from pgcombine.export_entry q where q.export = _export.export and q.error is null;
    for _bucket in
        select x.bucket, x.after, x.full_after, b.last - x.after as changes
        from pgcombine.export_bucket x
        join pgcombine.change_bucket b on b.queue = _export.queue and b.bucket = x.bucket
        where x.export = _export.export and (b.last > x.after or x.full_after is not null)
    loop
        entries := entries + _bucket.changes;
        if _bucket.changes > 0 then
            execute format('select c._commit_timestamp from pgcombine.%I c where c._bucket = $1 and c._sequence > $2
                order by c._sequence limit 1', _export.queue || '_changes')
            into _since using _bucket.bucket, _bucket.after;
            _oldest := least(_oldest, _since);
        end if;
        if _bucket.full_after is not null then
            execute format('select count(*) from %s where %s',
                pgcombine_internal.values_table(_export.queue, _bucket.bucket % (
                    select q.partitions from pgcombine.queue q where q.queue = _export.queue)),
                coalesce(nullif(concat_ws(' and ',
                    nullif(pgcombine_internal.bucket_condition(_export.queue, _bucket.bucket::text), ''),
                    pgcombine_internal.full_state_condition(_export.queue, _bucket.full_after)), ''), 'true'))
            into _found;
            entries := entries + _found;
        end if;
    end loop;
    lag_seconds := greatest(0, extract(epoch from clock_timestamp() - coalesce(_oldest, clock_timestamp())));
end
$$;
