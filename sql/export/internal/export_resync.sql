-- pgcombine_internal.export_resync(export [, keys, bucket]) → bigint
-- Writes entries that deliver keys again to a destination that has lost them or was changed by others. The entry of a
-- key has the present value, no old value, and a new sequence. If the key has no value, the entry deletes it at the
-- destination. Returns the number of entries.
--   keys    a JSON array of objects, the key columns by name; null: the keys that have a value
--   bucket  only the keys of this bucket of the queue, so that passes over other buckets needn't wait; null: all
--           buckets
-- A destination that already has higher sequences ignores the entries (see own_export).
-- The call waits for passes in progress over these buckets, and no other pass begins over them until the transaction
-- ends. So an entry has the latest value of its key, and later entries of the key have higher sequences.
-- Tables written: <export>_exports.
-- Errors: PC021 unknown export; PC003 no such bucket, the queue was rebucketed meanwhile, keys that don't fit, or the
-- isolation level isn't read committed; PC045 another server delivers the export; 42501 the caller lacks the right
-- work.
create or replace function pgcombine_internal.export_resync(export text, keys jsonb default null,
    bucket integer default null)
returns bigint
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(export_resync.export);
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(_export.queue);
    _values constant text := format('pgcombine.%I', _queue.queue || '_values');
    _asked constant text := format('jsonb_populate_recordset(null::%s, $1) k', _values);
    _slice constant text := case when export_resync.bucket is null then 'true' else
        format('satisfies_hash_partition(%L::regclass::oid, %s, %s, %s)', _values, _queue.buckets, export_resync.bucket,
            pgcombine_internal.column_list(_queue.queue, 'key', 'k.{name}')) end;
    _from text;
    _concerned boolean := true;
    _count bigint := 0;
begin
    perform pgcombine_internal.require_delivering(_export.export);
    perform pgcombine_internal.require_right(_queue.queue, 'work');
    -- with the snapshot of an earlier statement, entries could have outdated values
    perform pgcombine_internal.require(current_setting('transaction_isolation') = 'read committed', 'PC003',
        format('export "%s": its entries can''t be written at this isolation level', _export.export),
            'begin transaction isolation level read committed');
    perform pgcombine_internal.require(coalesce(export_resync.bucket, 0) between 0 and _queue.buckets - 1, 'PC003',
        format('queue "%s" has no bucket %s', _queue.queue, export_resync.bucket),
        format('its buckets are 0 to %s', _queue.buckets - 1));
    if export_resync.keys is not null then
        execute format('select exists (select from %s where %s)', _asked, _slice) into _concerned
            using export_resync.keys;
    end if;
    if _concerned then
        if export_resync.bucket is null then
            perform pgcombine_internal.claim_buckets(_queue.queue);
        else
            perform from pgcombine.bucket b where b.queue = _queue.queue and b.bucket = export_resync.bucket for update;
            -- a rebucket during the wait for the lock would have put other keys into the bucket
            perform pgcombine_internal.require((q.buckets, q.partitions) = (_queue.buckets, _queue.partitions), 'PC003',
                format('queue "%s" was rebucketed meanwhile', _queue.queue), 'run the resync again for all buckets')
            from pgcombine.queue q where q.queue = _queue.queue;
        end if;
        if export_resync.keys is not null then
            _from := format('%s left join %s v on %s', _asked, _values,
                pgcombine_internal.column_list(_queue.queue, 'key', 'v.{name} {equals} k.{name}', ' and '));
        elsif export_resync.bucket is null then
            _from := _values || ' k';
        else
            select format('(select * from %s where %s) k', t.relation, t.condition) into _from
            from pgcombine_internal.values_tables(_queue.queue) with ordinality t (relation, condition, number)
            where t.number = export_resync.bucket % _queue.partitions + 1;
        end if;
        execute pgcombine_internal.fill('insert into {exports} ({keys}, {news}) select {shown}, {found} from {from} '
            'where {slice}', jsonb_build_object(
            'exports', format('pgcombine.%I', _export.export || '_exports'),
            'keys', pgcombine_internal.column_list(_queue.queue, 'key'),
            'news', pgcombine_internal.column_list(_queue.queue, 'value', '{new}'), 'shown',
            -- the entry has the key in its stored form, if the key has a value
            pgcombine_internal.column_list(_queue.queue, 'key', case when export_resync.keys is null then 'k.{name}'
                else 'coalesce(v.{name}, k.{name})' end),
            'found', pgcombine_internal.column_list(_queue.queue, 'value', case when export_resync.keys is null then 'k'
                else 'v' end || '.{name}'),
            'from', _from, 'slice', _slice)) using export_resync.keys;
        get diagnostics _count = row_count;
    end if;
    return _count;
exception when data_exception or not_null_violation then
    raise exception 'export "%": keys that don''t fit: %', export_resync.export, sqlerrm
        using errcode = 'PC003', hint = 'give a JSON array of objects with the key columns';
end
$$;
