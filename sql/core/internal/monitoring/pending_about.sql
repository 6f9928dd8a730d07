-- pgcombine_internal.pending_about(queue) → jsonb
-- Returns the buckets of a queue that have pending updates, for the function sample: an array of objects with bucket,
-- pending (the number of updates) and since (the time of the oldest one, see time_of).
-- The list of buckets is exact. If a bucket's segments have more than a few pages, pending and since are estimates (see
-- segment_about).
create or replace function pgcombine_internal.pending_about(queue text)
returns jsonb
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(pending_about.queue);
    _found jsonb := '[]';
    _bucket integer;
    _log record;
    _first bigint;
    _pending bigint;
    _oldest bigint;
begin
    for _bucket in
        select b.bucket
        from pgcombine.bucket b
        where b.queue = _queue.queue
          and exists ( -- a table with a null size counts, too (see busy)
              select from generate_series(0, _queue.segments - 1) s
              where pg_relation_size(to_regclass(format('pgcombine.%I',
                  _queue.queue || '_updates_b' || to_char(b.bucket % _queue.partitions, 'FM0000') || '_s' || s)))
                    is distinct from 0)
        order by b.bucket
    loop
        _first := null;
        begin
            select l.tables, l.condition into _log from pgcombine_internal.bucket_log(_queue.queue, _bucket) l;
            if cardinality(_log.tables) > 0 then
                execute format('select pgcombine_tx from %s limit 1',
                    pgcombine_internal.log_sql(_queue.queue, _log.tables, _log.condition)) into _first;
            end if;
            if _first is not null then
                select greatest(1, sum(a.pending)), least(_first, min(a.oldest)) into _pending, _oldest
                from unnest(_log.tables) t (name)
                cross join lateral pgcombine_internal.segment_about(_queue.queue, t.name, _log.condition) a;
            end if;
            raise sqlstate 'PC099'; -- the rollback releases the locks on the segments: see busy
        exception
            when sqlstate 'PC099' then
                if _first is not null then
                    _found := _found || jsonb_build_object('bucket', _bucket, 'pending', _pending,
                        'since', pgcombine_internal.time_of(_oldest));
                end if;
            when undefined_table then null; -- another session has just exchanged or dropped the tables
        end;
    end loop;
    return _found;
end
$$;
