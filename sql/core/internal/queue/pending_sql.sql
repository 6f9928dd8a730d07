-- pgcombine_internal.pending_sql(queue) → text
-- Returns the query of the view <queue>_pending: the updates that the marks of their bucket don't see, one row for each
-- update. The query reads the marks once (see queue_marks). bucket_log has the same condition for one bucket.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.pending_sql(queue text)
returns text
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(queue);
    _updates constant text := format('pgcombine.%I', _queue.queue || '_updates');
    _buckets text; -- pairs of a segment and a bucket whose updates it may hold
    _marked text;
begin
    select string_agg(format('(%L::regclass::oid, %s)', t.name, b), ', ' order by b, t.name) into _buckets
    from generate_series(0, _queue.buckets - 1) b
    cross join unnest(pgcombine_internal.segment_tables(_queue.queue, b % _queue.partitions)) t (name);
    _marked := format('join b on b.segment = u.tableoid%s', case when _queue.partitions < _queue.buckets then (
        select ' and b.bucket = case '
            || string_agg(format('when %s then %s', pgcombine_internal.bucket_condition(_queue.queue, n::text), n), ' ')
            || ' end'
        from generate_series(0, _queue.buckets - 1) n) else '' end);
    return format('with b as materialized (
                       select s.segment, s.bucket, k.range_mask, k.marks
                       from (values %s) as s (segment, bucket) join pgcombine_internal.queue_marks(%L) k using (bucket))
                   select %s from %s u %s where not txid_visible_in_snapshot(u.pgcombine_tx,
                       b.marks[case when b.range_mask = 0 then 1 else 1 + (%s & b.range_mask) end])',
        _buckets, _queue.queue, pgcombine_internal.column_list(_queue.queue, form => 'u.{name}::{type} as {name}'),
        _updates, _marked, pgcombine_internal.key_hash(_queue.queue, 'u'));
end
$$;
