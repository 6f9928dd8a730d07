-- pgcombine.bucket_marks(queue, bucket) → (pass, mask, marks)
-- What of a bucket's updates is combined: those of a key that marks[1 + (hash & mask)] sees (see key_hash).
--   pass  the number of the last pass
--   mask  0 after a pass over all keys; after passes over slices the finest of their masks
create or replace function pgcombine.bucket_marks(queue text, bucket integer, out pass bigint, out mask bigint, out marks txid_snapshot[])
language plpgsql stable
as $$
declare
    _last pgcombine.pass;
    _one pgcombine.pass;
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
    where p.queue = bucket_marks.queue and p.bucket = bucket_marks.bucket and p.mask is null order by p.pass desc limit 1;
    select max(p.mask) into mask from pgcombine.pass p
    where p.queue = bucket_marks.queue and p.bucket = bucket_marks.bucket and p.pass > _one.pass;
    select array_agg(coalesce(s.mark, _one.mark) order by n.n) into marks
    from generate_series(0, bucket_marks.mask) n (n)
    left join lateral (
        select p.mark from pgcombine.pass p
        where p.queue = bucket_marks.queue and p.bucket = bucket_marks.bucket and p.pass > _one.pass and n.n & p.mask = p.slice
        order by p.pass desc limit 1) s on true;
end
$$;
