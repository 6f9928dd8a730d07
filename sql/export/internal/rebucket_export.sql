-- pgcombine_internal.rebucket_export(export)
-- Adds missing buckets to an export while its queue gets other buckets, and moves its own entries to the new buckets of
-- their keys. A full state that is being delivered begins again.
-- Tables written: export_bucket, export_entry.
create or replace function pgcombine_internal.rebucket_export(export pgcombine.export)
returns void
language plpgsql
as $$
declare
    _export constant pgcombine.export := rebucket_export.export;
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(_export.queue);
begin
    if not pgcombine_internal.delivers(_export.export) then
        return;
    end if;
    insert into pgcombine.export_bucket (export, bucket, after)
    select _export.export, n, l.number << 40
    from pgcombine.change_log l cross join generate_series(0, _queue.buckets - 1) n where l.queue = _export.queue
    on conflict on constraint export_bucket_pkey do nothing;
    execute format('update pgcombine.export_entry q set bucket = (
            select n from generate_series(0, %1$s - 1) n
            where satisfies_hash_partition(%2$L::regclass::oid, %1$s, n::integer, %3$s))
        from pgcombine.export_entry f cross join jsonb_populate_record(null::pgcombine.%4$I, f.entry) e
        where f.id = q.id and q.export = %5$L',
        _queue.buckets, format('pgcombine.%I', _queue.queue || '_values'),
        pgcombine_internal.column_list(_queue.queue, 'key', 'e.{name}'), _queue.queue || '_changes', _export.export);
    if exists (select from pgcombine.export_bucket x where x.export = _export.export and x.full_after is not null) then
        perform pgcombine_internal.begin_full_state(_export);
    end if;
end
$$;
