-- pgcombine_internal.rebucket_export(export)
-- Gives an export the new buckets of its queue, while all are claimed. The changes that the export hasn't delivered yet
-- become entries of its own, since later changes of their keys can come in other buckets. A full state that is being
-- delivered begins again; then only deletions become entries. The export's buckets are claimed: rebucket waits for
-- deliveries in progress before it locks tables.
-- Tables written: export_bucket, export_entry.
create or replace function pgcombine_internal.rebucket_export(export pgcombine.export)
returns void
language plpgsql
as $$
declare
    _export constant pgcombine.export := rebucket_export.export;
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(_export.queue);
    _whole constant boolean := exists (select from pgcombine.export_bucket x
        where x.export = _export.export and x.full_after is not null);
    _parts constant jsonb := jsonb_build_object(
        'export', quote_literal(_export.export), 'epoch', _export.epoch << 40,
        'log', format('pgcombine.%I', _queue.queue || '_changes'),
        'columns', concat_ws(', ', pgcombine_internal.column_list(_queue.queue, 'key'),
            case when not _whole then pgcombine_internal.column_list(_queue.queue, 'value', '{old}') end,
            pgcombine_internal.column_list(_queue.queue, 'value', '{new}')),
        'gone', case when _whole then ' and ' || pgcombine_internal.column_list(_queue.queue, 'value',
            'pgcombine_change.{new} is null', ' and ') end,
        'at', case when _export.format is not null then ', _commit_timestamp as pgcombine_at' end);
    _bucket constant text := pgcombine_internal.key_bucket(_queue.queue, 'pgcombine_change.{name}');
begin
    if not pgcombine_internal.delivers(_export.export) then
        return;
    end if;
    execute pgcombine_internal.fill('update pgcombine.export_entry q set bucket = ' || _bucket || '
        from pgcombine.export_entry f cross join jsonb_populate_record(null::{log}, f.entry) pgcombine_change
        where f.id = q.id and q.export = {export}', _parts);
    execute pgcombine_internal.fill('insert into pgcombine.export_entry (export, bucket, seq, entry, since)
        select {export}, ' || _bucket || ', pgcombine_change._number + {epoch}, to_jsonb(pgcombine_entry),
               pgcombine_change._commit_timestamp
        from pgcombine.export_bucket x
        join {log} pgcombine_change on pgcombine_change._bucket = x.bucket and pgcombine_change._sequence > x.after
        cross join lateral (select {columns}, pgcombine_change._number + {epoch} as seq{at}) pgcombine_entry
        where x.export = {export}{gone}', _parts);
    insert into pgcombine.export_bucket as x (export, bucket, after)
    select _export.export, n, coalesce(b.last, l.number << 40)
    from pgcombine.change_log l
    cross join generate_series(0, greatest(_queue.buckets - 1, (
        select max(b.bucket) from pgcombine.change_bucket b where b.queue = l.queue))) n
    left join pgcombine.change_bucket b on (b.queue, b.bucket) = (l.queue, n)
    where l.queue = _queue.queue
    on conflict on constraint export_bucket_pkey do update set after = excluded.after;
    if _whole then
        perform pgcombine_internal.begin_full_state(_export);
    end if;
    perform pg_notify('pgcombine.export ' || _export.export, '');
end
$$;
