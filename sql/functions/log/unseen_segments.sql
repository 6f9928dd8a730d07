-- pgcombine.unseen_segments(queue, bucket, mark [, until]) → text[]
-- The tables that may hold updates of the bucket which the mark doesn't see: those of the ids in progress in it, and those
-- of the ids from its end to until (null: the ids of now). Packed rows are in tables of their own.
create or replace function pgcombine.unseen_segments(queue text, bucket integer, mark txid_snapshot, until bigint default null)
returns text[]
language plpgsql stable
as $$
declare
    _queue constant pgcombine.queue := pgcombine.require_queue(unseen_segments.queue);
    _tables constant text[] := pgcombine.segment_tables(_queue.queue, unseen_segments.bucket % _queue.partitions);
    _first constant bigint := txid_snapshot_xmax(mark) >> _queue.segment_bits;
    _last constant bigint := coalesce(until, txid_snapshot_xmax(txid_current_snapshot())) >> _queue.segment_bits;
begin
    return array(
        select distinct t.name
        from (
            select n from generate_series(_first, least(_last, _first + _queue.segments - 1)) n
            union
            select txid_snapshot_xip(mark) >> _queue.segment_bits
        ) round (number)
        join unnest(_tables) with ordinality t (name, place)
          on (t.place - 1) % _queue.segments = round.number % _queue.segments
        order by t.name);
end
$$;
