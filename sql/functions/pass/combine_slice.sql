-- pgcombine.combine_slice(queue, bucket, mask, slice) → (bucket, updates, keys, changes, more)
-- A pass over those keys of the bucket whose hash & mask = slice; mask -1: the one key with that hash. To find
-- the keys that make a pass fail, halve a slice that fails: (mask, slice) into (2 * mask + 1, slice) and
-- (2 * mask + 1, slice + mask + 1), each tried in a transaction of its own; slice_keys tells when it is one key.
-- Tables written, errors: as combine.
create or replace function pgcombine.combine_slice(queue text, inout bucket integer, mask bigint, slice bigint,
    out updates bigint, out keys bigint, out changes bigint, out more boolean)
returns setof record
language plpgsql
as $$
declare
    _observed constant jsonb := pgcombine.observed(combine_slice.queue);
    _pass record;
begin
    select p.* into _pass
    from pgcombine.begin_pass(combine_slice.queue, combine_slice.bucket, mask => combine_slice.mask, slice => combine_slice.slice) p;
    if not found then
        return;
    end if;
    combine_slice.more := _pass.more;
    execute _pass.statement into updates, keys, changes;
    if pgcombine.observed(combine_slice.queue) is distinct from _observed then
        raise serialization_failure using message = format('observers of queue "%s" came or went during the pass', combine_slice.queue),
            hint = 'run it again';
    end if;
    return next;
end
$$;
