-- pgcombine_internal.busy([queue]) → (queue, bucket)
-- Lists the buckets with pending updates, of queues that aren't paused.
-- Updates of the caller's own transaction don't count.
-- The function checks each bucket in a subtransaction, so that it holds few locks at a time.
create or replace function pgcombine_internal.busy(inout queue text default null, out bucket integer)
returns setof record
language plpgsql
as $$
declare
    _now constant txid_snapshot := pgcombine_internal.current_mark();
    _one record;
    _log record;
    _pending boolean;
begin
    for _one in
        select f.queue, f.bucket
        from pgcombine_internal.filled_buckets(busy.queue) f join pgcombine.queue q using (queue)
        where not q.paused
    loop
        begin
            select l.tables, l.condition into _log from pgcombine_internal.bucket_log(_one.queue, _one.bucket, _now) l;
            _pending := pgcombine_internal.any_update(_log.tables, _log.condition);
            raise sqlstate 'PC099'; -- the exception clause rolls back, which ends the locks of the segments
        exception
            when sqlstate 'PC099' then
                if _pending then
                    queue := _one.queue;
                    bucket := _one.bucket;
                    return next;
                end if;
            when undefined_table or sqlstate 'PC001' then null; -- since the snapshot the queue was dropped
        end;
    end loop;
end
$$;
