-- pgcombine_internal.consumed_segments(queue, seen, horizon) → (relation, partition, last)
-- Lists the segments of a queue that hold only combined updates, or may do so.
-- A segment takes the updates of a range of transaction ids, its round, and later those of another round. A mark counts
-- if every present and future snapshot sees the mark's pass. The function knows this if the snapshot in the parameter
-- seen sees the pass, and the pass's transaction id is below horizon.
--   seen     a snapshot
--   horizon  the result of oldest_snapshot, called after seen was taken. Null: oldest_snapshot returned null
--   last     the last id of the segment's round, if the round is over and marks that count see all its ids. Null: the
--            segment is large, and one of these holds: its round isn't over, those marks don't see all its ids, or
--            horizon is null. Then only the segment's rows show whether it holds pending updates
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.consumed_segments(queue text, seen txid_snapshot, horizon bigint,
    out relation text, out partition integer, out last bigint)
returns setof record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue pgcombine.queue;
    _round bigint; -- the round of the current ids
    _small bigint := 128 * 1024; -- bytes; a segment up to this size may keep combined updates
begin
    _queue := pgcombine_internal.require_queue(consumed_segments.queue);
    _round := txid_snapshot_xmax(txid_current_snapshot()) >> _queue.segment_bits;
    -- After a truncation, sessions plan their statements again. So while passes run, a segment may keep more combined
    -- updates.
    if horizon is not null
       and exists (select from pgcombine.pass p
                   where p.queue = _queue.queue and p.ended > clock_timestamp() - interval '0.5 s')
    then
        _small := 8 * 1024 * 1024;
    end if;
    for _partition in 0 .. _queue.partitions - 1 loop
        partition := _partition;
        for _segment in 0 .. _queue.segments - 1 loop
            relation := pgcombine_internal.segment_table(_queue.queue, _partition, _segment);
            continue when coalesce(pg_relation_size(to_regclass(relation)), 0) = 0;
            last := ((_round - ((_round - _segment) & (_queue.segments - 1)) + 1) << _queue.segment_bits) - 1;
            if last < _round << _queue.segment_bits
               and not exists (select from generate_series(_partition, _queue.buckets - 1, _queue.partitions) b
                               where not pgcombine_internal.consumed(_queue.queue, b, last,
                                   consumed_segments.seen, consumed_segments.horizon))
            then
                return next;
            elsif pg_table_size(relation::regclass) > _small then -- includes the TOAST table
                last := null;
                return next;
            end if;
        end loop;
    end loop;
end
$$;
