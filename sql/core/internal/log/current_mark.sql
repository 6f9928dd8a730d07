-- pgcombine_internal.current_mark() → txid_snapshot
-- Returns the current snapshot (under repeatable read the transaction's) as a mark. The caller's own transaction is in
-- progress in it, so updates that it enqueues stay pending until it has committed.
create or replace function pgcombine_internal.current_mark()
returns txid_snapshot
language sql volatile
as $$
    select case when o.id < txid_snapshot_xmax(s) then
               format('%s:%s:%s', least(o.id, txid_snapshot_xmin(s)), txid_snapshot_xmax(s),
                   (select string_agg(i.id::text, ',' order by i.id)
                    from (select o.id union select txid_snapshot_xip(s)) i (id)))::txid_snapshot
           else s end
    from txid_current_snapshot() s, txid_current_if_assigned() o (id)
$$;
