-- pgcombine_internal.next_hash_range(queue, source, marks_mask, marks, most [, turn])
--     → (range_mask, hash_range, updates, pending)
-- Finds a hash range for a pass, as large as possible: the range has at most "most" pending updates, and what the pass
-- collects in memory takes at most 64 megabytes. A hash range of range_mask 4095 isn't divided further.
--   queue                   the queue's row
--   source                  a from item with all pending updates of the bucket
--   marks_mask, marks       see bucket_marks
--   most                    maximum number of updates. Without a turn the maximum is at least a 32nd of the backlog,
--                           since each pass reads the whole backlog
--   turn                    null: take the hash range with the oldest mark. Otherwise take the hash range with this
--                           number, modulo the number of hash ranges, so that a failing hash range doesn't delay the
--                           others
--   range_mask, hash_range  the keys with hash & range_mask = hash_range (see key_hash)
--   updates, pending        numbers of pending updates of the hash range and of all keys
create or replace function pgcombine_internal.next_hash_range(queue pgcombine.queue, source text, marks_mask bigint,
    marks txid_snapshot[], most bigint, turn bigint default null, out range_mask bigint, out hash_range bigint,
    out updates bigint, out pending bigint)
language plpgsql
as $$
declare
    _hash constant text := (next_hash_range.queue).pass ->> 'hash';
    _hashes bigint[]; -- hash ranges of range_mask 4095 that have pending updates
    _counts bigint[]; -- numbers of their pending updates, in the same order
    _most bigint := next_hash_range.most;
begin
    execute format('select array_agg(p.hash), array_agg(p.updates), coalesce(sum(p.updates), 0)
                    from (select %s & 4095 as hash, count(*) as updates from %s group by 1) p', _hash, source)
    into _hashes, _counts, pending;
    if turn is null then
        _most := greatest(_most, pending / 32);
    end if;
    loop
        select f.range_mask, f.hash_range, f.updates into next_hash_range.range_mask, next_hash_range.hash_range,
            next_hash_range.updates
        from (
            select c.*, row_number() over (order by c.hash_range, c.range_mask) - 1 as number, count(*) over () as count
            from (
                select s.range_mask, s.hash & s.range_mask as hash_range, min(s.updates) as updates,
                       min(txid_snapshot_xmax(
                           next_hash_range.marks[1 + (s.hash & next_hash_range.marks_mask)])) as mark
                from ( -- for each hash the largest hash range that fits
                    select distinct on (a.hash) a.hash, a.range_mask, a.updates
                    from (select p.hash, m.range_mask,
                                 sum(p.count) over (partition by m.range_mask, p.hash & m.range_mask)::bigint as updates
                          from unnest(_hashes, _counts) p (hash, count)
                          cross join (select (2 ^ bits)::bigint - 1 from generate_series(0, 12) bits) m (range_mask)) a
                    where a.updates <= _most or a.range_mask = 4095
                    order by a.hash, a.range_mask) s
                group by 1, 2) c) f
        order by case when next_hash_range.turn is null then f.mark
                      else (f.number + f.count - next_hash_range.turn % f.count) % f.count end, random()
        limit 1;
        exit when coalesce(next_hash_range.range_mask, 4095) = 4095
            or not pgcombine_internal.takes_bytes(next_hash_range.queue,
            67108864, format('(select * from %s where %s & %s = %s) as updates', source, _hash,
                next_hash_range.range_mask,
                next_hash_range.hash_range));
        _most := greatest(1, least(_most, next_hash_range.updates) / 8);
    end loop;
end
$$;
