-- pgcombine.pending_since(queue, bucket, moves, mark) → boolean
-- One look of wait: whether updates that were committed before the mark are still pending in the bucket. Null: it
-- can't be told, since updates were written anew after the caller read moves, or the bucket is gone.
--   mark  a transaction id (pg_snapshot_xmax of the caller's snapshot) that isn't kept for longer than a wait
-- Rows from before the mark are told by age: what is older than the mark, or so old that its age wraps around.
-- Runs with its owner's rights: a role that may enqueue or read may also wait.
-- Errors: PC001 unknown queue; 42501 the caller has no right on the queue.
create or replace function pgcombine.pending_since(queue text, bucket integer, moves bigint, mark xid8)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _moves bigint;
    _pending boolean;
begin
    perform pgcombine.require_right(pending_since.queue, 'use', pgcombine.caller());
    begin
        execute format(
            'select (select b.moves from pgcombine.bucket b where b.queue = $1 and b.bucket = $2),
                    exists (select from %s where %s age(xmin) not between 0 and $3)',
            (pgcombine.bucket_tables(pending_since.queue, pending_since.bucket))[1],
            nullif(pgcombine.bucket_slice(pending_since.queue, pending_since.bucket), '') || ' and')
        into _moves, _pending
        using pending_since.queue, pending_since.bucket, age((pending_since.mark::text::numeric % 4294967296)::text::xid);
    exception when undefined_table then
        return null;
    end;
    return case when _moves = pending_since.moves then _pending end;
end
$$;
