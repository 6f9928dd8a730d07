-- pgcombine_internal.queue_marks(queue) → (bucket, range_mask, marks)
-- Returns the marks of all buckets, as bucket_marks does for one, in one query; no row if the queue is unknown.
-- In a copied database keys without a stable hash may be in other buckets (see stable_hash). Until post_restore has
-- run, all their updates are pending, so the returned marks see none.
-- Runs with its owner's rights, for every role, since readers of <queue>_pending and <queue>_current need the marks.
-- The function checks no right: caller() would raise in REFRESH MATERIALIZED VIEW, and a mark holds only transaction
-- ids.
create or replace function pgcombine_internal.queue_marks(queue text, out bucket integer, out range_mask bigint,
    out marks txid_snapshot[])
returns setof record
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if not pgcombine_internal.own_cluster() and not pgcombine_internal.stable_hash(queue_marks.queue) then
        return query select b.bucket, 0::bigint, array['1:1:'::txid_snapshot] from pgcombine.bucket b
            where b.queue = queue_marks.queue;
        return;
    end if;
    return query
        select b.bucket, k.range_mask, k.marks
        from pgcombine.bucket b
        cross join lateral (
            select p.range_mask, p.mark::text::txid_snapshot as mark from pgcombine.pass p
            where p.queue = b.queue and p.bucket = b.bucket order by p.pass desc limit 1) l
        cross join lateral (
            select 0::bigint, array[l.mark] where l.range_mask is null
            union all
            select s.range_mask, s.marks from pgcombine_internal.bucket_marks(b.queue, b.bucket) s
                where l.range_mask is not null) k (range_mask, marks)
        where b.queue = queue_marks.queue;
end
$$;
