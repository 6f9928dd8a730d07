-- pgcombine_internal.bucket_log(queue, bucket [, new]) → (pass, range_mask, marks, tables, condition)
-- Returns the tables that may hold a bucket's pending updates, and the condition that selects these updates.
-- An update is pending if its key's mark doesn't see it. The condition has the marks of one bucket as constants, for
-- functions that read the log at once. taken_sql, pending_sql and delete_consumed have other forms of it.
--   new        a mark: only updates that a pass with this mark takes. Null: all visible updates
--   pass, range_mask, marks  see bucket_marks
--   tables     the segments that aren't empty and take ids that a mark doesn't see: ids after the mark, and ids that
--              the mark saw in progress. In a copied database: all segments that aren't empty
--   condition  on pgcombine_tx and the queue's columns, for log_sql
-- If there is no such bucket, pass and marks are null, and tables is empty.
create or replace function pgcombine_internal.bucket_log(queue text, bucket integer, new txid_snapshot default null,
    out pass bigint, out range_mask bigint, out marks txid_snapshot[], out tables text[], out condition text)
language plpgsql stable
as $$
declare
    _queue pgcombine.queue;
    _end bigint; -- the lowest xmax of the marks
    _open bigint[] := '{}'; -- ids below _end that a mark saw in progress
    _last bigint; -- the highest id that an update to select may have
    _round bigint;
    _segments integer[] := '{}';
    _segment integer;
    _table text;
    _own constant boolean := pgcombine_internal.own_cluster(); -- false: marks and ids are another database's
begin
    select q.* into _queue from pgcombine.queue q where q.queue = bucket_log.queue;
    select m.pass, m.range_mask, m.marks into bucket_log.pass, bucket_log.range_mask, bucket_log.marks
    from pgcombine_internal.bucket_marks(bucket_log.queue, bucket_log.bucket) m;
    if bucket_log.pass is null then -- the bucket was dropped
        tables := '{}';
        condition := 'false';
        return;
    end if;
    if not _own and not pgcombine_internal.stable_hash(_queue.queue) then
        -- in a copied database the keys may be in other buckets, so all updates are pending (see queue_marks)
        range_mask := 0;
        marks := array['1:1:'];
    end if;
    _end := txid_snapshot_xmax(marks[1]);
    for _number in 2 .. cardinality(marks) loop
        if txid_snapshot_xmax(marks[_number]) < _end then
            _end := txid_snapshot_xmax(marks[_number]);
        end if;
    end loop;
    -- An id that the mark of one hash range saw in progress may be visible in the mark of another. So all these ids are
    -- read, and the condition below checks each key's own mark.
    if cardinality(marks) > 1 or txid_snapshot_xmin(marks[1]) < _end then
        _open := array(select distinct x from unnest(marks) m (mark), txid_snapshot_xip(m.mark) x where x < _end
            order by x);
    end if;
    -- the transaction's own id can be beyond its snapshot's xmax
    _last := greatest(txid_snapshot_xmax(coalesce(new, txid_current_snapshot())) - 1,
        case when new is null then txid_current_if_assigned() end);

    for _round in _end >> _queue.segment_bits .. least(_last >> _queue.segment_bits,
        (_end >> _queue.segment_bits) + _queue.segments - 1) loop
        _segments := _segments || (_round & (_queue.segments - 1))::integer;
    end loop;
    for _number in 1 .. cardinality(_open) loop
        _segment := (_open[_number] >> _queue.segment_bits) & (_queue.segments - 1);
        if not _segment = any (_segments) then
            _segments := _segments || _segment;
        end if;
    end loop;
    if not _own then -- in a copied database every segment may hold pending updates
        _segments := array(select generate_series(0, _queue.segments - 1));
    end if;
    tables := '{}';
    -- A rebucket may have exchanged the partitions. Opening the table makes the session notice the exchange; looking up
    -- names doesn't.
    perform pg_relation_size(format('pgcombine.%I', _queue.queue || '_updates')::regclass);
    foreach _segment in array _segments loop
        _table := pgcombine_internal.segment_table(_queue.queue, bucket_log.bucket % _queue.partitions, _segment);
        -- a null size means that another session is dropping the table
        if coalesce(pg_relation_size(_table::regclass), 1) > 0 then
            tables := tables || _table;
        end if;
    end loop;

    -- Without statistics the planner expects one row in two hundred between two limits. The planner doesn't recognize a
    -- limit that is written with "is not true", so it expects many rows.
    condition := case when cardinality(_open) = 0 then format('(pgcombine_tx < %s) is not true', _end)
                      else format('(pgcombine_tx >= %s or pgcombine_tx = any (%L))', _end, _open) end;
    if new is not null then
        condition := condition || format(' and (pgcombine_tx >= %s) is not true', txid_snapshot_xmax(new));
        if txid_snapshot_xmin(new) < txid_snapshot_xmax(new) then
            condition := condition || format(' and pgcombine_tx <> all (%L)', array(select txid_snapshot_xip(new)));
        end if;
    end if;
    if range_mask > 0 then
        condition := condition
            || format(' and not txid_visible_in_snapshot(pgcombine_tx, (%L::txid_snapshot[])[1 + (%s & %s)])',
            marks, pgcombine_internal.key_hash(_queue.queue), range_mask);
    end if;
    if _queue.partitions < _queue.buckets then
        condition := pgcombine_internal.bucket_condition(_queue.queue, bucket_log.bucket::text) || ' and ' || condition;
    end if;
end
$$;
