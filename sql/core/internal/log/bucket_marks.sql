-- pgcombine_internal.bucket_marks(queue, bucket) → (pass, range_mask, marks)
-- Returns a bucket's marks. An update is combined if its key's mark sees it. That mark is marks[1 + (hash &
-- range_mask)] (see key_hash).
--   pass        the number of the last pass
--   range_mask  0 if the last pass was over all keys; otherwise the largest range_mask of the passes since the last one
--               over all keys
create or replace function pgcombine_internal.bucket_marks(queue text, bucket integer, out pass bigint,
    out range_mask bigint, out marks txid_snapshot[])
language plpgsql stable
as $$
declare
    _last pgcombine.pass;
    _one pgcombine.pass; -- the last pass over all keys
    _mark txid_snapshot;
    _left bigint; -- number of hash ranges whose mark isn't known yet
begin
    select p.* into _last from pgcombine.pass p
    where p.queue = bucket_marks.queue and p.bucket = bucket_marks.bucket order by p.pass desc limit 1;
    pass := _last.pass;
    range_mask := 0;
    if _last.range_mask is null then
        marks := array[_last.mark::text::txid_snapshot];
        return;
    end if;
    select p.* into _one from pgcombine.pass p
    where p.queue = bucket_marks.queue and p.bucket = bucket_marks.bucket and p.range_mask is null
        order by p.pass desc limit 1;
    select max(p.range_mask), max(p.range_mask) + 1 into range_mask, _left from pgcombine.pass p
    where p.queue = bucket_marks.queue and p.bucket = bucket_marks.bucket and p.pass > _one.pass;
    marks := array_fill(null::txid_snapshot, array[(range_mask + 1)::integer]);
    for _last in
        select p.* from pgcombine.pass p
        where p.queue = bucket_marks.queue and p.bucket = bucket_marks.bucket and p.pass >= _one.pass
            order by p.pass desc
    loop
        _mark := _last.mark::text::txid_snapshot;
        for _hash in coalesce(_last.hash_range, 0) .. range_mask by coalesce(_last.range_mask, 0) + 1 loop
            if marks[_hash + 1] is null then
                marks[_hash + 1] := _mark;
                _left := _left - 1;
            end if;
        end loop;
        exit when _left = 0;
    end loop;
end
$$;
