-- pgcombine.rebucket(queue, buckets [, buckets_per_partition, timeout])
-- Changes the number of a queue's buckets while writers and readers continue. The call claims all buckets, so no pass
-- runs until the caller's transaction ends. <queue>_updates and <queue>_values keep their grants, views and triggers.
-- At the end the call locks these two tables until the transaction ends. Meanwhile it copies the latest updates, and
-- PostgreSQL scans the new values once to check them.
--   buckets_per_partition  null: unchanged
--   timeout  how long after its beginning the call gives up locking the tables. The time includes copying the values
-- If neither number changes, the call changes nothing. As with TRUNCATE, a repeatable-read transaction whose snapshot
-- is older than the call's commit, and which hasn't read the queue yet, sees an empty queue.
-- Tables written: <queue>_updates, <queue>_values; pgcombine.queue, bucket, pass, failure, expiry, restoring; those of
-- components.
-- Errors: PC001 unknown queue; PC003 invalid numbers, or the isolation level isn't read committed; PC006 the lock
-- wasn't granted in time; PC012 the database is a copy in which post_restore has not run yet;
-- 42501 the caller doesn't own the queue.
create or replace function pgcombine.rebucket(queue text, buckets integer, buckets_per_partition integer default null,
    timeout interval default '5 min')
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue pgcombine.queue;
    _until constant timestamptz := clock_timestamp() + rebucket.timeout;
    _partitions integer;
    -- Every old mark sees all ids below this one, and the new marks see no others. So the copied updates, which keep
    -- their ids, stay pending.
    _oldest bigint;
    _query text;
begin
    perform pgcombine_internal.require_queue(rebucket.queue);
    perform pgcombine_internal.require_owner();
    _queue := pgcombine_internal.claim_buckets(rebucket.queue, 'rebucket');
    perform pgcombine_internal.refuse_copied();
    buckets_per_partition := coalesce(rebucket.buckets_per_partition, _queue.buckets / _queue.partitions);
    perform pgcombine_internal.check_buckets(buckets, buckets_per_partition);
    _partitions := rebucket.buckets / buckets_per_partition;
    if (rebucket.buckets, _partitions) = (_queue.buckets, _queue.partitions) then
        return;
    end if;
    for _query in select h.query from pgcombine.hook h where h.event = 'rebucketing' loop
        execute _query using _queue.queue;
    end loop;
    select min(txid_snapshot_xmin(m)) into _oldest
    from pgcombine.bucket b
    cross join lateral pgcombine_internal.bucket_marks(b.queue, b.bucket) k
    cross join unnest(k.marks) m
    where b.queue = _queue.queue;
    perform pgcombine_internal.rebuild_tables(_queue.queue, _partitions, _until);
    update pgcombine.queue q
    set buckets = rebucket.buckets, partitions = _partitions
    where q.queue = _queue.queue;
    delete from pgcombine.bucket b where b.queue = _queue.queue and b.bucket >= rebucket.buckets;
    -- the new row versions make a claim with an older snapshot fail
    update pgcombine.bucket b set bucket = b.bucket where b.queue = _queue.queue;
    insert into pgcombine.bucket (queue, bucket) select _queue.queue, n
        from generate_series(_queue.buckets, rebucket.buckets - 1) n;
    perform pgcombine_internal.mark_all(_queue.queue, format('%s:%s:', _oldest, _oldest)::txid_snapshot);
    delete from pgcombine.failure f where f.queue = _queue.queue;
    delete from pgcombine.expiry r where r.queue = _queue.queue;
    execute format('create or replace view pgcombine.%I as %s',
        _queue.queue || '_pending', pgcombine_internal.pending_sql(_queue.queue));
    perform pgcombine_internal.regenerate_pass(_queue.queue);
    for _query in select h.query from pgcombine.hook h where h.event = 'rebucket' loop
        execute _query using _queue.queue;
    end loop;
    if _queue.notify then
        perform pg_notify('pgcombine.' || _queue.queue, '');
    end if;
end
$$;
