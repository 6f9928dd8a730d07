-- pgcombine_internal.queue_marks(queue) → (bucket, mask, marks)
-- Returns the marks of all buckets, as bucket_marks does for one, in one read of the journal.
-- Runs with its owner's rights, for roles with any right on the queue.
-- Errors: PC001 unknown queue; 42501 the caller has no right on the queue.
create or replace function pgcombine_internal.queue_marks(queue text, out bucket integer, out mask bigint, out marks txid_snapshot[])
returns setof record
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.require_right(queue_marks.queue, 'use', pgcombine_internal.caller());
    return query
        select b.bucket, k.mask, k.marks
        from pgcombine.bucket b
        cross join lateral (
            select p.mask, p.mark from pgcombine.pass p where p.queue = b.queue and p.bucket = b.bucket order by p.pass desc limit 1) l
        cross join lateral (
            select 0::bigint, array[l.mark] where l.mask is null
            union all
            select s.mask, s.marks from pgcombine_internal.bucket_marks(b.queue, b.bucket) s where l.mask is not null) k (mask, marks)
        where b.queue = queue_marks.queue;
end
$$;
