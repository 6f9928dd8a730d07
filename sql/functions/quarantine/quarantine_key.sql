-- pgcombine.quarantine_key(queue, bucket, hash, attempts, sqlstate, error [, proven]) → bigint
-- Quarantines a key: moves its pending updates into <queue>_quarantine, and from now on passes move there what
-- is enqueued for it. Returns how many updates were moved (none: the key has none any more and isn't quarantined);
-- null: it was not done.
--   hash    of the key (slice_keys tells it); it finds the key, which then goes by its value
--   proven  whether other keys of the bucket pass. If nothing passes, all keys may fail for a common reason (an
--           observer's table is gone): then it is not done while another bucket of the queue fails or another key
--           is quarantined, so that this takes one key at most.
-- Tables written: the bucket's updates, <queue>_quarantine, <queue>_quarantine_keys, quarantined_key.
-- Errors: PC001 unknown queue.
create or replace function pgcombine.quarantine_key(queue text, bucket integer, hash bigint, attempts integer,
    sqlstate text, error text, proven boolean default true)
returns bigint
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(quarantine_key.queue);
    _table text;
    _keys text;
    _rows tid[]; -- an update of the key
begin
    perform from pgcombine.bucket b where b.queue = _queue.queue and b.bucket = quarantine_key.bucket for update;
    if pgcombine.blameless(quarantine_key.sqlstate) or (not proven and (
        exists (select from pgcombine.failure f where f.queue = _queue.queue and f.bucket <> quarantine_key.bucket)
        or exists (select from pgcombine.quarantined_key k where k.queue = _queue.queue)))
    then
        return null;
    end if;
    _table := (pgcombine.bucket_tables(_queue.queue, quarantine_key.bucket))[1];
    perform pgcombine.unpack(_queue.queue, quarantine_key.bucket, false);
    perform pgcombine.divert(_queue.queue, quarantine_key.bucket); -- those of others aren't counted below
    select string_agg(format('%I', c.name), ', ' order by c.position) into _keys
    from pgcombine.queue_column c where c.queue = _queue.queue and c.role = 'key';
    -- one key, as a rule; but two keys may have one hash
    execute format('select coalesce(array_agg(ctid), ''{}'') from (select distinct on (%s) ctid from %s where %s%s%s = $1 and %s) as found',
        _keys, _table, nullif(pgcombine.bucket_slice(_queue.queue, quarantine_key.bucket), '') || ' and ',
        pgcombine.plain_rows(_queue.queue), pgcombine.key_hash(_queue.queue), pgcombine.not_held(_queue.queue))
    into _rows using quarantine_key.hash;
    perform pgcombine.hold_keys(_queue.queue, quarantine_key.bucket, _rows, quarantine_key.attempts,
        array_fill(quarantine_key.sqlstate, array[cardinality(_rows)]), array_fill(quarantine_key.error, array[cardinality(_rows)]));
    return pgcombine.divert(_queue.queue, quarantine_key.bucket);
end
$$;
