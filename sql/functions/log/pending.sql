-- pgcombine.pending(queue, bucket [, seen_by]) → boolean
-- Whether the bucket has pending updates.
-- Runs with its owner's rights, for who may use the queue in any way.
--   seen_by  of those that this snapshot sees
create or replace function pgcombine.pending(queue text, bucket integer, seen_by txid_snapshot default null)
returns boolean
language plpgsql volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _done record;
    _oldest txid_snapshot;
    _now txid_snapshot;
    _pending boolean;
begin
    perform pgcombine.require_right(pending.queue, 'use', pgcombine.caller());
    select * into _done from pgcombine.bucket_marks(pending.queue, pending.bucket);
    _oldest := pgcombine.oldest_mark(_done.marks);
    _now := coalesce(pending.seen_by, txid_current_snapshot());
    if txid_snapshot_xmax(_oldest) >= txid_snapshot_xmax(_now) and txid_snapshot_xmin(_oldest) = txid_snapshot_xmax(_oldest) then
        return false; -- nobody has written anything since
    end if;
    execute format('select exists (select from %s)', pgcombine.log_sql(pending.queue,
        pgcombine.unseen_segments(pending.queue, pending.bucket, _oldest),
        concat_ws(' and ', nullif(pgcombine.bucket_slice(pending.queue, pending.bucket), ''),
            pgcombine.marked_sql(pending.queue, _done.mask, _done.marks, pending.seen_by))))
    into _pending;
    return _pending;
end
$$;
