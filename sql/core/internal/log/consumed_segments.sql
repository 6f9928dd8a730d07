-- pgcombine_internal.consumed_segments(queue, seen, horizon) → (relation, partition, last)
-- Lists the segments of a queue's updates that hold combined updates only, or may do so.
-- A round is the range of ids that a segment holds until its turn in the ring comes again. A mark counts if every
-- snapshot, present and future, sees its pass. That is so if the snapshot seen sees the pass, and the pass's
-- transaction id is below horizon.
--   seen     a snapshot
--   horizon  the oldest snapshot held after seen was taken (see oldest_snapshot). Null: it isn't known
--   last     the last id of the segment's round: the round is over, and marks that count cover all of it. Null: the
--            segment isn't small, and only a look at its rows can show whether it holds pending updates. Its round
--            isn't over, or no pass had a reason to look beyond it, or the horizon isn't known
-- Runs with its owner's rights, for roles that may run passes over the queue.
-- Errors: PC001 unknown queue; 42501 the caller may not run passes over it.
create or replace function pgcombine_internal.consumed_segments(queue text, seen txid_snapshot, horizon bigint,
    out relation text, out partition integer, out last bigint)
returns setof record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _queue pgcombine.queue;
    _round bigint; -- the round of the current ids
    _small bigint := 128 * 1024; -- bytes: such a segment may keep combined updates
begin
    perform pgcombine_internal.require_right(consumed_segments.queue, 'work', pgcombine_internal.caller());
    _queue := pgcombine_internal.require_queue(consumed_segments.queue);
    _round := txid_snapshot_xmax(txid_current_snapshot()) >> _queue.segment_bits;
    -- Each truncation changes the catalog, and sessions plan their statements anew. So while passes go on, a segment of
    -- the current round may hold a hundred thousand updates, which a pass reads past in 3 ms.
    if horizon is not null
       and exists (select from pgcombine.pass p
                   where p.queue = _queue.queue and p.ended > clock_timestamp() - interval '0.5 s')
    then
        _small := 8 * 1024 * 1024;
    end if;
    for _partition in 0 .. _queue.partitions - 1 loop
        partition := _partition;
        for _segment in 0 .. _queue.segments - 1 loop
            relation := format('pgcombine.%I',
                _queue.queue || '_updates_b' || to_char(_partition, 'FM0000') || '_s' || _segment);
            continue when coalesce(pg_relation_size(to_regclass(relation)), 0) = 0;
            last := ((_round - ((_round - _segment) & (_queue.segments - 1)) + 1) << _queue.segment_bits) - 1;
            if last < _round << _queue.segment_bits
               and not exists (select from generate_series(_partition, _queue.buckets - 1, _queue.partitions) b
                               where not pgcombine_internal.consumed(_queue.queue, b, last,
                                   consumed_segments.seen, consumed_segments.horizon))
            then
                return next;
            elsif pg_table_size(relation::regclass) > _small then -- with the TOAST table
                last := null;
                return next;
            end if;
        end loop;
    end loop;
end
$$;
