-- pgcombine.slice_keys(queue, bucket, mask, slice) → (updates, keys, hash)
-- The pending updates of a slice of the bucket's keys (see combine_slice), how many keys they are of, and the
-- hash of one of these. Those of quarantined keys are left out.
create or replace function pgcombine.slice_keys(queue text, bucket integer, mask bigint, slice bigint,
    out updates bigint, out keys bigint, out hash bigint)
language plpgsql stable
as $$
begin
    execute format('select count(*), count(distinct h), min(h) from (select %s as h from %s %s) as pending',
        pgcombine.key_hash(slice_keys.queue), pgcombine.bucket_updates(slice_keys.queue, slice_keys.bucket),
        pgcombine.not_quarantined(slice_keys.queue, format('%s & %s = %s', pgcombine.key_hash(slice_keys.queue),
            slice_keys.mask, slice_keys.slice)))
    into updates, keys, hash;
end
$$;
