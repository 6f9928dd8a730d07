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
    _log record;
    _pending boolean := false;
begin
    perform pgcombine.require_right(pending.queue, 'use', pgcombine.caller());
    select l.tables, l.condition into _log from pgcombine.bucket_log(pending.queue, pending.bucket, pending.seen_by) l;
    if cardinality(_log.tables) > 0 then
        execute format('select exists (select from %s)', pgcombine.log_sql(pending.queue, _log.tables, _log.condition)) into _pending;
    end if;
    return _pending;
end
$$;
