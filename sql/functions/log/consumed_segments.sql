-- pgcombine.consumed_segments(queue, seen, horizon) → (relation, partition, last)
-- The tables of a queue's updates that hold some and need them no more, or may do so.
--   seen     a snapshot; horizon: what the oldest snapshot was after it (see oldest_snapshot). The marks that count are
--            those that each snapshot sees, now and from now on: of passes that seen sees, with ids below horizon
--   last     the last id of the round of ids that the table holds: it is over, and all of it is combined by such marks. Null:
--            the table is large, and what is pending in it, if anything, only a look under its lock can tell: the round
--            isn't over, or no pass has had a reason to look beyond it
-- Runs with its owner's rights, for who may run passes over the queue.
-- Errors: PC001 unknown queue; 42501 the caller may not run passes over it.
create or replace function pgcombine.consumed_segments(queue text, seen txid_snapshot, horizon bigint,
    out relation text, out partition integer, out last bigint)
returns setof record
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _large constant bigint := 8 * 1024 * 1024; -- bytes: about a hundred thousand updates, which a pass reads past in 3 ms
    _queue pgcombine.queue;
    _round bigint; -- that of the ids of now
begin
    perform pgcombine.require_right(consumed_segments.queue, 'work', pgcombine.caller());
    _queue := pgcombine.require_queue(consumed_segments.queue);
    _round := txid_snapshot_xmax(txid_current_snapshot()) >> _queue.segment_bits;
    for _partition in 0 .. _queue.partitions - 1 loop
        partition := _partition;
        for _place in 0 .. _queue.segments * case when _queue.packs then 2 else 1 end - 1 loop
            relation := format('pgcombine.%I', _queue.queue || '_updates_b' || to_char(_partition, 'FM0000') || '_s' || _place);
            continue when coalesce(pg_relation_size(to_regclass(relation)), 0) = 0;
            last := ((_round - ((_round - _place) & (_queue.segments - 1)) + 1) << _queue.segment_bits) - 1;
            if last < _round << _queue.segment_bits
               and not exists (select from generate_series(_partition, _queue.buckets - 1, _queue.partitions) b
                               where not pgcombine.consumed(_queue.queue, b, last, consumed_segments.seen, consumed_segments.horizon)) then
                return next;
            elsif pg_table_size(relation::regclass) > _large then -- long arrays are beside it
                last := null;
                return next;
            end if;
        end loop;
    end loop;
end
$$;
