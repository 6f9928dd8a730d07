-- pgcombine_internal.pending_about(queue [, only_failing]) → jsonb
-- Estimates how much is pending in a queue (see segment_about), for sample: an array with bucket, pending and since, the
-- time of the oldest pending update (see time_of), of each bucket in which something is pending.
--   only_failing  look only at buckets whose last pass failed. A worker sleeps on the queue (see slept_on), so nothing
--                 is pending in the others
create or replace function pgcombine_internal.pending_about(queue text, only_failing boolean default false)
returns jsonb
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(pending_about.queue);
    _found jsonb := '[]';
    _bucket integer;
    _pending bigint;
    _oldest bigint;
begin
    for _bucket in
        select b.bucket
        from pgcombine.bucket b
        where b.queue = _queue.queue
          and (not only_failing or exists (select from pgcombine.failure f where f.queue = b.queue and f.bucket = b.bucket))
          and exists ( -- see busy
              select from generate_series(0, _queue.segments * case when _queue.packs then 2 else 1 end - 1) s
              where pg_relation_size(to_regclass(format('pgcombine.%I', _queue.queue || '_updates_b' || to_char(b.bucket % _queue.partitions, 'FM0000') || '_s' || s)))
                    is distinct from 0)
        order by b.bucket
    loop
        begin
            select sum(a.pending), min(a.oldest) into _pending, _oldest
            from pgcombine_internal.bucket_log(_queue.queue, _bucket) l
            cross join lateral unnest(l.tables) t (name)
            cross join lateral pgcombine_internal.segment_about(_queue.queue, t.name, l.condition) a;
            raise sqlstate 'PC099'; -- ends the locks of the segments: see busy
        exception
            when sqlstate 'PC099' then
                if _pending > 0 then
                    _found := _found || jsonb_build_object('bucket', _bucket, 'pending', _pending, 'since', coalesce(pgcombine_internal.time_of(_oldest), clock_timestamp()));
                end if;
            when undefined_table then null; -- another session has just exchanged or dropped the tables
        end;
    end loop;
    return _found;
end
$$;
