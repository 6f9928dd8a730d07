-- pgcombine.busy([queue]) → (queue, bucket)
-- Buckets with pending updates, of one queue or of all; those of paused queues are left out, and of queues that the
-- caller may not run passes over.
-- A table that is looked into stays locked until the transaction ends, and the server has room for so many locks only.
-- So this looks into a portion of the tables at a time, in a subtransaction that it rolls back: that ends the locks.
-- Errors: none; PC099 rolls back, and goes no further.
create or replace function pgcombine.busy(inout queue text default null, out bucket integer)
returns setof record
language plpgsql stable
as $$
declare
    _portion constant integer := 128;
    _queues text[];
    _buckets integer[];
    _looks text[];
    _pending boolean;
begin
    select array_agg(l.queue), array_agg(l.bucket), array_agg(format('select exists (select from %s)', l.updates))
    into _queues, _buckets, _looks
    from (
        select b.queue, b.bucket, (pgcombine.partition_tables(b.queue, b.bucket % q.partitions))[1]
               || case when q.partitions < q.buckets then ' where ' || pgcombine.bucket_slice(b.queue, b.bucket) else '' end as updates
        from pgcombine.queue q join pgcombine.bucket b using (queue)
        where not q.paused and (busy.queue is null or q.queue = busy.queue) and pgcombine.has_right(q.queue, 'work')
    ) l;
    for _first in 1 .. coalesce(cardinality(_looks), 0) by _portion loop
        begin
            for _number in _first .. least(_first + _portion - 1, cardinality(_looks)) loop
                execute _looks[_number] into _pending;
                if _pending then
                    busy.queue := _queues[_number];
                    busy.bucket := _buckets[_number];
                    return next;
                end if;
            end loop;
            raise sqlstate 'PC099';
        exception
            when sqlstate 'PC099' then null;
            when undefined_table then null; -- of a queue that was dropped since the snapshot: the rest is for the next look
        end;
    end loop;
end
$$;
