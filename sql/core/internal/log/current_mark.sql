-- pgcombine_internal.current_mark() → txid_snapshot
-- Returns the current snapshot as a mark; under repeatable read it is the transaction's snapshot. The mark counts the
-- caller's own transaction as in progress. So updates that this transaction enqueues stay pending.
create or replace function pgcombine_internal.current_mark()
returns txid_snapshot
language plpgsql volatile -- PL/pgSQL keeps the query's plan
as $$
begin
    return (select case when o.id < txid_snapshot_xmax(s) then
               format('%s:%s:%s', least(o.id, txid_snapshot_xmin(s)), txid_snapshot_xmax(s),
                   (select string_agg(i.id::text, ',' order by i.id)
                    from (select o.id union select txid_snapshot_xip(s)) i (id)))::txid_snapshot
           else s end
    from txid_current_snapshot() s, txid_current_if_assigned() o (id));
end
$$;
