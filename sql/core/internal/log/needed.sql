-- pgcombine_internal.needed(queue, relation, partition, seen, horizon, wholly) → boolean
-- Returns whether a segment must be kept: it holds pending updates, or some snapshot may not see the passes over it
-- (see consumed_segments). The answer stays right only while the caller has the segment locked.
--   wholly  false: look for pending updates only in the last pages, where they usually are
-- Errors: PC001 unknown queue.
create or replace function pgcombine_internal.needed(queue text, relation text, partition integer, seen txid_snapshot,
    horizon bigint, wholly boolean)
returns boolean
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(needed.queue);
    _end constant text := format('ctid >= ''(%s,0)''::tid',
        greatest(0, pg_relation_size(relation::regclass) / current_setting('block_size')::bigint - 32));
    _log record;
    _pending boolean;
begin
    for _bucket in needed.partition .. _queue.buckets - 1 by _queue.partitions loop
        if exists (
            select from pgcombine.pass p
            where p.queue = _queue.queue and p.bucket = _bucket
              and p.pass >= (select max(o.pass) from pgcombine.pass o where o.queue = _queue.queue
                  and o.bucket = _bucket and o.range_mask is null)
              and not (p.tx < needed.horizon and txid_visible_in_snapshot(p.tx, needed.seen)))
        then
            return true;
        end if;
        select l.tables, l.condition into _log from pgcombine_internal.bucket_log(_queue.queue, _bucket) l;
        continue when not needed.relation = any (_log.tables); -- the bucket has no pending updates in the segment
        execute format('select exists (select from %s)',
            pgcombine_internal.log_sql(_queue.queue, array[needed.relation], _log.condition, _end)) into _pending;
        if not _pending and wholly then
            execute format('select exists (select from %s)',
                pgcombine_internal.log_sql(_queue.queue, array[needed.relation], _log.condition)) into _pending;
        end if;
        if _pending then
            return true;
        end if;
    end loop;
    return false;
end
$$;
