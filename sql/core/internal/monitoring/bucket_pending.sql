-- pgcombine_internal.bucket_pending(queue, bucket) → (pending, oldest)
-- Returns the number of a bucket's pending updates, and the id of the oldest one's transaction; null: none is pending.
-- The function counts in a subtransaction, so that it holds few locks at a time.
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.bucket_pending(queue text, bucket integer, out pending bigint,
    out oldest bigint)
language plpgsql
as $$
declare
    _log record;
begin
    select l.tables, l.condition into _log
        from pgcombine_internal.bucket_log(bucket_pending.queue, bucket_pending.bucket) l;
    pending := 0;
    if cardinality(_log.tables) > 0 then
        begin
            execute format('select count(*), min(pgcombine_tx) from %s',
                pgcombine_internal.log_sql(queue, _log.tables, _log.condition))
            into pending, oldest;
            raise sqlstate 'PC099'; -- the exception clause rolls back, which ends the locks of the segments
        exception when sqlstate 'PC099' then null;
        end;
    end if;
end
$$;
