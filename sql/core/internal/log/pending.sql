-- pgcombine_internal.pending(queue, bucket [, seen_by]) → boolean
-- Returns whether a bucket has pending updates.
--   seen_by  count only updates that this snapshot sees; null: all visible updates
-- Runs with its owner's rights, for roles with any right on the queue.
-- Errors: PC001 unknown queue; 42501 the caller has no right on the queue.
create or replace function pgcombine_internal.pending(queue text, bucket integer, seen_by txid_snapshot default null)
returns boolean
language plpgsql volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _log record;
begin
    perform pgcombine_internal.require_right(pending.queue, 'use', pgcombine_internal.caller());
    select l.tables, l.condition into _log
        from pgcombine_internal.bucket_log(pending.queue, pending.bucket, pending.seen_by) l;
    return pgcombine_internal.any_update(_log.tables, _log.condition);
end
$$;
