-- pgcombine.hold_keys(queue, bucket, rows, attempts, sqlstates, errors)
-- Puts keys of the bucket on the list of those that are quarantined; divert then moves their updates. Part of a pass,
-- after its claim.
--   rows  one plain row of the bucket's updates for each key; sqlstates, errors: why, in the same order
-- Tables written: quarantined_key, <queue>_quarantine_keys.
create or replace function pgcombine.hold_keys(queue text, bucket integer, "rows" tid[], attempts integer,
    sqlstates text[], errors text[])
returns void
language plpgsql
as $$
declare
    _table constant text := (pgcombine.bucket_tables(hold_keys.queue, hold_keys.bucket))[1];
    _keys text;
    _members text;
    _row tid;
    _sqlstate text;
    _error text;
    _key jsonb;
    _id bigint;
begin
    select string_agg(format('%I', c.name), ', ' order by c.position), string_agg(format('%L, %I', c.name, c.name), ', ' order by c.position)
    into _keys, _members
    from pgcombine.queue_column c where c.queue = hold_keys.queue and c.role = 'key';
    for _row, _sqlstate, _error in select * from unnest(hold_keys."rows", hold_keys.sqlstates, hold_keys.errors) loop
        execute format('select jsonb_build_object(%s) from %s where ctid = $1', _members, _table) into strict _key using _row;
        insert into pgcombine.quarantined_key (queue, key, updates, attempts, sqlstate, error)
        values (hold_keys.queue, _key, 0, hold_keys.attempts, _sqlstate, _error)
        returning id into _id;
        execute format('insert into pgcombine.%I select %s, $1 from %s where ctid = $2', hold_keys.queue || '_quarantine_keys', _keys, _table)
        using _id, _row;
    end loop;
end
$$;
