-- pgcombine.bucket_log(queue, bucket [, new]) → (pass, mask, marks, tables, condition)
-- Where a bucket's pending updates are, and which they are.
--   new        of those that a pass with this mark takes. Null: of all that are visible
--   pass, mask, marks  as bucket_marks
--   tables     what may hold some: the segments of the ids in progress in the marks and of those since, if anything is in
--              them. Packed rows are in segments of their own
--   condition  on pgcombine_tx and the queue's columns, for log_sql
-- It runs for every look at a bucket: so it is one function, of few queries.
create or replace function pgcombine.bucket_log(queue text, bucket integer, new txid_snapshot default null,
    out pass bigint, out mask bigint, out marks txid_snapshot[], out tables text[], out condition text)
language plpgsql stable
as $$
declare
    _queue pgcombine.queue;
    _end bigint; -- of the ids that all marks know
    _open bigint[] := '{}'; -- those of them that were in progress in one
    _last bigint; -- id that may be of interest
    _round bigint;
    _segments integer[] := '{}';
    _segment integer;
    _table text;
begin
    select q.* into _queue from pgcombine.queue q where q.queue = bucket_log.queue;
    select m.pass, m.mask, m.marks into bucket_log.pass, bucket_log.mask, bucket_log.marks
    from pgcombine.bucket_marks(bucket_log.queue, bucket_log.bucket) m;
    if bucket_log.pass is null then -- the bucket went
        tables := '{}';
        condition := 'false';
        return;
    end if;
    _end := txid_snapshot_xmax(marks[1]);
    for _number in 2 .. cardinality(marks) loop
        if txid_snapshot_xmax(marks[_number]) < _end then
            _end := txid_snapshot_xmax(marks[_number]);
        end if;
    end loop;
    -- what one of them knows as open may be combined by another
    if cardinality(marks) > 1 or txid_snapshot_xmin(marks[1]) < _end then
        _open := array(select distinct x from unnest(marks) m (mark), txid_snapshot_xip(m.mark) x where x < _end order by x);
    end if;
    _last := txid_snapshot_xmax(coalesce(new, txid_current_snapshot())) - 1;

    for _round in _end >> _queue.segment_bits .. least(_last >> _queue.segment_bits, (_end >> _queue.segment_bits) + _queue.segments - 1) loop
        _segments := _segments || (_round & (_queue.segments - 1))::integer;
    end loop;
    for _number in 1 .. cardinality(_open) loop
        _segment := (_open[_number] >> _queue.segment_bits) & (_queue.segments - 1);
        if not _segment = any (_segments) then
            _segments := _segments || _segment;
        end if;
    end loop;
    if not pgcombine.own_lineage() then -- the marks are another database's, and so are the ids
        _segments := array(select generate_series(0, _queue.segments - 1));
    end if;
    tables := '{}';
    -- to open the table makes the session hear of a rebucket that has exchanged the partitions: names alone don't
    perform pg_relation_size(format('pgcombine.%I', _queue.queue || '_updates')::regclass);
    foreach _segment in array _segments loop
        _table := format('pgcombine.%I', _queue.queue || '_updates_b' || to_char(bucket_log.bucket % _queue.partitions, 'FM0000') || '_s' || _segment);
        -- null: it goes at this moment
        if coalesce(pg_relation_size(_table::regclass), 1) > 0 then
            tables := tables || _table;
        end if;
        if _queue.packs then
            _table := format('pgcombine.%I', _queue.queue || '_updates_b' || to_char(bucket_log.bucket % _queue.partitions, 'FM0000') || '_s' || _segment + _queue.segments);
            if coalesce(pg_relation_size(_table::regclass), 1) > 0 then
                tables := tables || _table;
            end if;
        end if;
    end loop;

    -- the planner has no statistics, and would take a range of ids for one row in two hundred: so the limits are no range to it
    condition := case when cardinality(_open) = 0 then format('(pgcombine_tx < %s) is not true', _end)
                      else format('(pgcombine_tx >= %s or pgcombine_tx = any (%L))', _end, _open) end;
    if new is not null then
        condition := condition || format(' and (pgcombine_tx >= %s) is not true', txid_snapshot_xmax(new));
        if txid_snapshot_xmin(new) < txid_snapshot_xmax(new) then
            condition := condition || format(' and pgcombine_tx <> all (%L)', array(select txid_snapshot_xip(new)));
        end if;
    end if;
    if mask > 0 then
        condition := condition || format(' and not txid_visible_in_snapshot(pgcombine_tx, (%L::txid_snapshot[])[1 + (%s & %s)])',
            marks, pgcombine.key_hash(_queue.queue), mask);
    end if;
    if _queue.partitions < _queue.buckets then
        condition := pgcombine.bucket_slice(_queue.queue, bucket_log.bucket) || ' and ' || condition;
    end if;
end
$$;
