-- pgcombine_internal.bucket_marks(queue, bucket) → (pass, mask, marks)
-- Returns a bucket's marks. An update is combined if its key's mark, marks[1 + (hash & mask)], sees it (see key_hash).
--   pass  the number of the last pass
--   mask  0 after a pass over all keys; after passes over slices the finest of their masks
create or replace function pgcombine_internal.bucket_marks(queue text, bucket integer, out pass bigint, out mask bigint,
    out marks txid_snapshot[])
language plpgsql stable
as $$
declare
    _last pgcombine.pass;
    _one pgcombine.pass; -- the last pass over all keys
    _left bigint; -- slices whose mark isn't known yet
begin
    select p.* into _last from pgcombine.pass p
    where p.queue = bucket_marks.queue and p.bucket = bucket_marks.bucket order by p.pass desc limit 1;
    pass := _last.pass;
    mask := 0;
    if _last.mask is null then
        marks := array[_last.mark];
        return;
    end if;
    select p.* into _one from pgcombine.pass p
    where p.queue = bucket_marks.queue and p.bucket = bucket_marks.bucket and p.mask is null
        order by p.pass desc limit 1;
    select max(p.mask), max(p.mask) + 1 into mask, _left from pgcombine.pass p
    where p.queue = bucket_marks.queue and p.bucket = bucket_marks.bucket and p.pass > _one.pass;
    marks := array_fill(null::txid_snapshot, array[(mask + 1)::integer]);
    for _last in
        select p.* from pgcombine.pass p
        where p.queue = bucket_marks.queue and p.bucket = bucket_marks.bucket and p.pass >= _one.pass
            order by p.pass desc
    loop
        for _place in coalesce(_last.slice, 0) .. mask by coalesce(_last.mask, 0) + 1 loop
            if marks[_place + 1] is null then
                marks[_place + 1] := _last.mark;
                _left := _left - 1;
            end if;
        end loop;
        exit when _left = 0;
    end loop;
end
$$;
