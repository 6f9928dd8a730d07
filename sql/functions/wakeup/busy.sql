-- pgcombine.busy([queue]) → (queue, bucket)
-- Buckets with pending updates, of one queue or of all; those of paused queues are left out.
create or replace function pgcombine.busy(inout queue text default null, out bucket integer)
returns setof record
language plpgsql stable
as $$
declare
    _only constant text := busy.queue;
    _slice text;
    _updates text;
    _pending boolean;
begin
    begin
        for busy.queue, busy.bucket, _updates, _slice in
            select b.queue, b.bucket, (pgcombine.partition_tables(b.queue, b.bucket % q.partitions))[1],
                   case when q.partitions < q.buckets then 'where ' || pgcombine.bucket_slice(b.queue, b.bucket) else '' end
            from pgcombine.queue q join pgcombine.bucket b using (queue)
            where not q.paused and (_only is null or q.queue = _only)
        loop
            execute format('select exists (select from %s %s)', _updates, _slice) into _pending;
            if _pending then
                return next;
            end if;
        end loop;
    exception when undefined_table then
        null; -- of a queue that was dropped since the snapshot; what was found before it is enough for now
    end;
end
$$;
