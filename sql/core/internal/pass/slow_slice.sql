-- pgcombine_internal.slow_slice(slow, tx, pending, mask, marks) → (mask, slice)
-- Returns the slice that the next pass takes after passes that the server has cancelled; no row: all keys.
-- Each part of a slice that took too long has one turn, the smallest first. This way few passes are cancelled before it
-- is known which keys take so long. After that, slices that are too small to be cut are tried again.
--   slow, tx     those of the bucket's row in pgcombine.failure
--   pending      the slices of mask 4095 that have pending updates
--   mask, marks  see bucket_marks
create or replace function pgcombine_internal.slow_slice(slow bigint[], tx bigint, pending bigint[], inout mask bigint, marks txid_snapshot[],
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
