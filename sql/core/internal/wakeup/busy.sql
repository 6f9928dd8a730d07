-- pgcombine_internal.busy([queue]) → (queue, bucket)
-- Lists the buckets with pending updates, of queues that aren't paused and over which the caller may run passes.
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
        select b.queue, b.bucket
        from pgcombine.queue q join pgcombine.bucket b using (queue)
        where not q.paused and (busy.queue is null or q.queue = busy.queue)
            and pgcombine_internal.has_right(q.queue, 'work')
          -- Reading the sizes of a bucket's tables is faster than checking the bucket. If a size is null, another
          -- session has just exchanged the table, so the bucket is checked.
          and exists (
              select from generate_series(0, q.segments - 1) s
              where pg_relation_size(to_regclass(format('pgcombine.%I',
                  q.queue || '_updates_b' || to_char(b.bucket % q.partitions, 'FM0000') || '_s' || s)))
                    is distinct from 0)
    loop
        begin
            select l.tables, l.condition into _log from pgcombine_internal.bucket_log(_one.queue, _one.bucket, _now) l;
            _pending := pgcombine_internal.any_update(_log.tables, _log.condition);
            raise sqlstate 'PC099'; -- the exception clause rolls back, which ends the locks of the segments
        exception
            when sqlstate 'PC099' then
                if _pending then
                    busy.queue := _one.queue;
                    busy.bucket := _one.bucket;
                    return next;
                end if;
            -- since the snapshot the queue was dropped or the right revoked
            when undefined_table or insufficient_privilege or sqlstate 'PC001' then null;
        end;
    end loop;
end
$$;
