-- pgcombine.busy([queue]) → (queue, bucket)
-- Buckets with pending updates that a pass would take: of queues that aren't paused and that the caller may pass over. What
-- the caller's own transaction has enqueued doesn't count.
-- Each is looked at by itself, so that a look holds few locks at a time.
create or replace function pgcombine.busy(inout queue text default null, out bucket integer)
returns setof record
language plpgsql
as $$
declare
    _now constant txid_snapshot := pgcombine.current_mark();
    _one record;
    _pending boolean;
begin
    for _one in
        select b.queue, b.bucket
        from pgcombine.queue q join pgcombine.bucket b using (queue)
        where not q.paused and (busy.queue is null or q.queue = busy.queue) and pgcombine.has_right(q.queue, 'work')
    loop
        begin
            _pending := pgcombine.pending(_one.queue, _one.bucket, _now);
            raise sqlstate 'PC099'; -- ends the locks of the tables
        exception
            when sqlstate 'PC099' then
                if _pending then
                    busy.queue := _one.queue;
                    busy.bucket := _one.bucket;
                    return next;
                end if;
            when undefined_table or insufficient_privilege or sqlstate 'PC001' then null; -- dropped, or not allowed any more, since the snapshot
        end;
    end loop;
end
$$;
