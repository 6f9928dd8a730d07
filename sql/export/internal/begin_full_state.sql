-- pgcombine_internal.begin_full_state(export)
-- Makes an export deliver a full state: an entry without an old value for each key that has a value, in the order of
-- keys, beside the changes (see export_take). The caller has claimed the queue's buckets and the export's.
-- The entries get numbers that are drawn here: higher than those of all earlier changes, and lower than those of all
-- later ones. The count of numbers is enough for the keys that the statistics know, twice, and for more (see
-- claim_export).
-- Tables written: export_bucket.
create or replace function pgcombine_internal.begin_full_state(export pgcombine.export)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue((begin_full_state.export).queue);
    _first bigint;
    _numbers constant bigint := 131072 + 3 * (select b.batch from pgcombine.export b
        where b.export = (begin_full_state.export).export) + 2 * (
        select greatest(max(c.reltuples) * _queue.partitions / _queue.buckets, 0)::bigint
        from generate_series(0, _queue.partitions - 1) p
        join pg_class c on c.oid = pgcombine_internal.values_table(_queue.queue, p)::regclass);
begin
    -- One session at a time: between nextval and setval another one could do the same, and draw the numbers again.
    perform from pgcombine.schema_version for update;
    _first := nextval('pgcombine.change_sequence');
    perform setval('pgcombine.change_sequence', _first + _queue.buckets * _numbers);
    update pgcombine.export_bucket x
    set full_after = case when x.bucket < _queue.buckets then '{}'::jsonb end,
        full_seq = ((begin_full_state.export).epoch << 40) + _first + x.bucket * _numbers,
        full_end = ((begin_full_state.export).epoch << 40) + _first + (x.bucket + 1) * _numbers - 1
    where x.export = (begin_full_state.export).export;
    perform pg_notify('pgcombine.export ' || (begin_full_state.export).export, '');
end
$$;
