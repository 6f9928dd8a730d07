-- pgcombine_internal.export_resync(export [, keys]) → bigint
-- Delivers keys again to a destination that has lost them or was changed by others. The entry of a key has the present
-- value, no old value, and a new sequence. If the key has no value, the entry deletes it at the destination. Returns
-- the number of keys.
--   keys    a JSON array of objects, the key columns by name; null: a full state, of the keys that have a value
-- A destination that already has higher sequences ignores the entries (see own_export).
-- The call waits for passes in progress, and a full state also for deliveries in progress. No other pass begins until
-- the transaction ends. So an entry has the latest value of its key, and later entries of the key have higher
-- sequences.
-- Tables written: export_bucket, export_entry.
-- Errors: PC021 unknown export; PC003 keys that don't fit, or the isolation level isn't read committed; PC045 another
-- server delivers the export; 42501 the caller lacks the right work.
create or replace function pgcombine_internal.export_resync(export text, keys jsonb default null)
returns bigint
language plpgsql
as $$
declare
    _export constant pgcombine.export := pgcombine_internal.require_export(export_resync.export);
    _queue constant text := _export.queue;
    _count bigint;
begin
    perform pgcombine_internal.require_delivering(_export.export);
    perform pgcombine_internal.require_right(_queue, 'work');
    -- with the snapshot of an earlier statement, entries could have outdated values
    perform pgcombine_internal.require(current_setting('transaction_isolation') = 'read committed', 'PC003',
        format('export "%s": its entries can''t be written at this isolation level', _export.export),
            'begin transaction isolation level read committed');
    perform pgcombine_internal.claim_buckets(_queue);
    if export_resync.keys is null then
        perform from pgcombine.export_bucket x where x.export = _export.export order by x.bucket for update;
        perform pgcombine_internal.begin_full_state(_export);
        execute format('select count(*) from pgcombine.%I', _queue || '_values') into _count;
        return _count;
    end if;
    execute pgcombine_internal.fill(
        'insert into pgcombine.export_entry (export, bucket, seq, entry)
        select {export}, {bucket}, s.seq, to_jsonb(pgcombine_entry)
        from jsonb_populate_recordset(null::{values}, $1) k
        left join {values} v on {same_key}
        cross join lateral (select (e.epoch << 40) + nextval(''pgcombine.change_sequence'') as seq
                            from pgcombine.export e where e.export = {export} and row({asked}) is not null) s
        cross join lateral (select {keys}, {news}, s.seq{at}) pgcombine_entry', jsonb_build_object(
        'export', quote_literal(_export.export), 'values', format('pgcombine.%I', _queue || '_values'),
        'bucket', pgcombine_internal.key_bucket(_queue, 'k.{name}'),
        'asked', pgcombine_internal.column_list(_queue, 'key', 'k.{name}'),
        'same_key', pgcombine_internal.column_list(_queue, 'key', 'v.{name} {equals} k.{name}', ' and '),
        -- the entry has the key in its stored form, if the key has a value
        'keys', pgcombine_internal.column_list(_queue, 'key', 'coalesce(v.{name}, k.{name}) as {name}'),
        'news', pgcombine_internal.column_list(_queue, 'value', 'v.{name} as {new}'),
        'at', case when _export.format is not null then ', now() as pgcombine_at' end)) using export_resync.keys;
    get diagnostics _count = row_count;
    perform pgcombine_internal.require(_count = jsonb_array_length(export_resync.keys), 'PC003',
        format('export "%s": a key has no value for a key column', _export.export),
        'give a JSON array of objects with the key columns');
    perform pg_notify('pgcombine.export ' || _export.export, '');
    return _count;
exception when data_exception or not_null_violation then
    raise exception 'export "%": keys that don''t fit: %', export_resync.export, sqlerrm
        using errcode = 'PC003', hint = 'give a JSON array of objects with the key columns';
end
$$;
