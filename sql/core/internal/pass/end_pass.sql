-- pgcombine_internal.end_pass(queue, plan, updates, keys, changes)
-- Writes a pass to the journal: from now on its mark says which updates are combined. A pass over all keys gets a
-- journal row only if it took updates. If the keys have no stable hash (see stable_hash), the function deletes the
-- updates that the pass took.
--   queue  the queue's row
-- Tables written: pass; <queue>_updates, if keys have no stable hash.
-- Errors: 23505 another pass over the bucket has committed since this pass's snapshot.
create or replace function pgcombine_internal.end_pass(queue pgcombine.queue, plan pgcombine.plan, updates bigint,
    keys bigint, changes bigint)
returns void
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := end_pass.queue;
    _plan constant pgcombine.plan := end_pass.plan;
    _segments text[];
begin
    if end_pass.updates > 0 or _plan.range_mask > 0 then
        insert into pgcombine.pass (queue, bucket, pass, mark, range_mask, hash_range, began, updates, keys, changes)
        values (_plan.queue, _plan.bucket, _plan.pass, _plan.mark::text::pg_snapshot, nullif(_plan.range_mask, 0),
                case when _plan.range_mask > 0 then _plan.hash_range end, _plan.began,
                end_pass.updates, end_pass.keys, end_pass.changes);
        if not (_queue.pass ->> 'stable_hash')::boolean then
            _segments := pgcombine_internal.segment_tables(_plan.queue, _plan.bucket % _queue.partitions);
            for _segment in 0 .. _queue.segments - 1 loop
                execute format('delete from %s where %s', _segments[_segment + 1],
                    pgcombine_internal.taken_sql(_plan.queue, _plan.bucket::text, _segment))
                using null, null, null, _plan.marks, _plan.marks_mask, _plan.mark, _plan.reads, _plan.range_mask,
                    _plan.hash_range;
            end loop;
        end if;
    end if;
end
$$;
