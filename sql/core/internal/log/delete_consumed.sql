-- pgcombine_internal.delete_consumed(queue, relation, partition) → bigint
-- Deletes the combined updates among the first hundred thousand updates of a segment; returns their number. The
-- function replaces truncation where neither the caller nor the schema's owner can see which snapshots are held: older
-- snapshots still see deleted rows, but not truncated ones. Autovacuum frees the space. The function deletes nothing
-- and returns 0 if another session has locked the segment, if the segment is gone, or if the statistics count only dead
-- rows in it. Its condition is the reverse of bucket_log's, for all buckets of the partition and stricter: an update
-- counts as combined if all marks of its bucket see it.
-- Tables written: the segment.
-- Errors: 42501 the caller lacks the right work.
create or replace function pgcombine_internal.delete_consumed(queue text, relation text, partition integer)
returns bigint
language plpgsql
as $$
declare
    _segment constant oid := to_regclass(relation);
    -- A crash resets the statistics, which then count neither live nor dead rows.
    _known constant boolean := coalesce(pg_stat_get_last_analyze_time(_segment),
        pg_stat_get_last_autoanalyze_time(_segment)) is not null;
    _combined text;
    _last tid;
    _deleted bigint := 0;
begin
    -- If the statistics count only dead rows, the call returns at once. Without this check, each call would read all
    -- dead rows until they are vacuumed.
    if _known and pg_stat_get_live_tuples(_segment) = 0 and pg_stat_get_dead_tuples(_segment) > 0 then
        return 0;
    end if;
    execute format('lock table only %s in row exclusive mode nowait', relation);
    -- the marks are read under the lock, since a rebucket may have exchanged the segment before
    select string_agg(concat_ws(' and ', nullif(pgcombine_internal.bucket_condition(b.queue, b.bucket::text), ''),
               format('pgcombine_tx < %s and pgcombine_tx <> all (%L::bigint[])', m.below, m.open)), ' or ')
    into _combined
    from pgcombine.bucket b
    join pgcombine.queue q using (queue)
    cross join lateral (
        select (select min(txid_snapshot_xmax(s)) from unnest(k.marks) s) as below,
               array(select distinct x from unnest(k.marks) s, txid_snapshot_xip(s) x) as open
        from pgcombine_internal.bucket_marks(b.queue, b.bucket) k) m
    where b.queue = delete_consumed.queue and b.bucket % q.partitions = delete_consumed.partition;
    execute format('select max(ctid) from (select ctid from %s limit 100000) as updates', relation) into _last;
    execute format('delete from %s where ctid <= $1 and (%s)', relation, coalesce(_combined, 'false')) using _last;
    get diagnostics _deleted = row_count;
    if _deleted = 0 and not _known then
        perform pgcombine_internal.tell_autovacuum(delete_consumed.queue, _segment);
    end if;
    return _deleted;
exception when lock_not_available or undefined_table then
    return 0;
end
$$;
