-- pgcombine.quarantine_key(queue, bucket, hash, attempts, sqlstate, error [, proven]) → bigint
-- Quarantines a key: moves its pending updates into <queue>_quarantine, and from now on passes move there what
-- is enqueued for it. Returns how many updates were moved (none: the
-- key has none any more and isn't quarantined); null: it was not done.
--   hash    of the key (slice_keys tells it)
--   proven  whether other keys of the bucket pass. If nothing passes, all keys may fail for a common reason (an
--           observer's table is gone): then it is not done while another bucket of the queue fails or another key
--           is quarantined, so that this takes one key at most.
-- Tables written: the bucket's updates, <queue>_quarantine, quarantined_key.
-- Errors: PC001 unknown queue.
create or replace function pgcombine.quarantine_key(queue text, bucket integer, hash bigint, attempts integer,
    sqlstate text, error text, proven boolean default true)
returns bigint
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(quarantine_key.queue);
    _keys text;
    _columns text;
    _moved bigint;
begin
    perform from pgcombine.bucket b where b.queue = _queue.queue and b.bucket = quarantine_key.bucket for update;
    if pgcombine.blameless(quarantine_key.sqlstate) or (not proven and (
        exists (select from pgcombine.failure f where f.queue = _queue.queue and f.bucket <> quarantine_key.bucket)
        or exists (select from pgcombine.quarantined_key k where k.queue = _queue.queue)))
    then
        return null;
    end if;
    perform pgcombine.unpack(_queue.queue, quarantine_key.bucket, false);
    select string_agg(format('%L, %I', c.name, c.name), ', ' order by c.position) filter (where c.role = 'key'),
           string_agg(format('%I', c.name), ', ' order by c.position)
    into _keys, _columns
    from pgcombine.queue_column c where c.queue = _queue.queue;
    execute format(
        'with moved as (
             delete from %1$s where %7$s%6$s %2$s = $2 returning %3$s
         ), held as (
             insert into pgcombine.%4$I (pgcombine_hash, %3$s) select $2, %3$s from moved
         ), listed as (
             insert into pgcombine.quarantined_key as k (queue, hash, key, updates, attempts, sqlstate, error)
             select $1, $2, (select jsonb_build_object(%5$s) from moved limit 1), count(*), $3, $4, $5
             from moved having count(*) > 0
             on conflict (queue, hash) do update set updates = k.updates + excluded.updates
         )
         select count(*) from moved',
        (pgcombine.bucket_tables(_queue.queue, quarantine_key.bucket))[1], pgcombine.key_hash(_queue.queue), _columns,
        _queue.queue || '_quarantine', _keys,
        nullif(pgcombine.bucket_slice(_queue.queue, quarantine_key.bucket), '') || ' and', pgcombine.plain_rows(_queue.queue))
    into _moved
    using _queue.queue, quarantine_key.hash, quarantine_key.attempts, quarantine_key.sqlstate, quarantine_key.error;
    return _moved;
end
$$;
