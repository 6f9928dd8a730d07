-- pgcombine.slow_slice(slow, tx, pending, mask, marks) → (mask, slice)
-- The slice of the keys that the next pass takes after passes that the server has cancelled. No row: all keys.
-- The parts of what took too long have one turn each, the smallest first, so that few passes are cancelled until it is
-- known which keys take so long. Then what can't be cut any more is tried again.
--   slow, tx     of the bucket's failure
--   pending      the slices of mask 4095 in which updates are pending
--   mask, marks  what is combined (see bucket_marks)
create or replace function pgcombine.slow_slice(slow bigint[], tx bigint, pending bigint[], inout mask bigint, marks txid_snapshot[],
    out slice bigint)
returns setof record
language sql volatile
as $$
    with cancelled as (
        select id, m - 1 as mask, id - m as slice
        from unnest(slow_slice.slow) id cross join lateral (select (2 ^ (length(ltrim(id::bit(64)::text, '0')) - 1))::bigint) as highest (m)
    ), parts (mask, slice, again) as (
        select 8 * (c.mask + 1) - 1, c.slice + part * (c.mask + 1), false
        from cancelled c cross join generate_series(0, 7) part
        where c.id < 1024
        union all
        select c.mask, c.slice, true from cancelled c where c.id >= 1024
    )
    select p.mask, p.slice
    from parts p
    where exists (
            select from unnest(slow_slice.pending) place
            where place & p.mask = p.slice and (p.again or txid_snapshot_xmax(marks[1 + (place & slow_slice.mask)]) <= slow_slice.tx))
      and (p.again or not p.mask + 1 + p.slice = any (slow_slice.slow))
    order by p.again, p.mask desc, random()
    limit 1
$$;
