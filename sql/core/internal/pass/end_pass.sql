-- pgcombine_internal.end_pass(queue, plan, updates, keys, changes, expired) → next page
-- Writes a pass to the journal: from now on its mark says which updates are combined. A pass over all keys gets a
-- journal row only if it took updates. If the keys have no stable hash (see stable_hash), the function deletes the
-- updates that the pass took.
-- Returns the page where the scan for expired keys continues. Null: the scan has ended, or the pass didn't scan.
--   queue    the queue's row
--   expired  number of expired keys that the pass has removed. If this is 10000, the limit of a pass, the next pass
--            scans the same pages
-- Tables written: pass; <queue>_updates, if keys have no stable hash; failure, if a failure of the bucket is recorded;
-- expiry, if the pass scanned for expired keys, or by forget_failure.
-- Errors: 40001 another pass over the bucket has committed since this pass's snapshot; run the pass again.
create or replace function pgcombine_internal.end_pass(queue pgcombine.queue, plan pgcombine.plan, updates bigint,
    keys bigint, changes bigint, expired bigint default 0)
returns bigint
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := end_pass.queue;
    _plan constant pgcombine.plan := end_pass.plan;
    _segments text[];
    _next bigint;
begin
    if end_pass.updates > 0 or _plan.range_mask > 0 then
        insert into pgcombine.pass (queue, bucket, pass, mark, range_mask, hash_range, began, updates, keys, changes)
        values (_plan.queue, _plan.bucket, _plan.pass, _plan.mark, nullif(_plan.range_mask, 0),
                case when _plan.range_mask > 0 then _plan.hash_range end, _plan.began,
                end_pass.updates, end_pass.keys, end_pass.changes)
        on conflict on constraint pass_pkey do nothing;
        if not found then
            raise serialization_failure using hint = 'run the pass again', message = format(
                'another pass over bucket %s of queue "%s" has committed meanwhile', _plan.bucket, _plan.queue);
        end if;
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
    if not _plan.more then
        perform pgcombine_internal.forget_failure(_plan.queue, _plan.bucket);
    else -- doubles the bucket's limit, which fail_pass has halved
        update pgcombine.failure f
        set pass_limit = nullif(least(2 * greatest(f.pass_limit, 1), _queue.pass_limit), _queue.pass_limit)
        where f.queue = _plan.queue and f.bucket = _plan.bucket and f.pass_limit is not null;
    end if;
    if _plan.first_page is not null then
        _next := _plan.first_page + case when end_pass.expired < 10000 then 1024 else 0 end;
        -- after a pass that took updates, the scan pauses for as long as the pass has run
        return pgcombine_internal.schedule_expiry(_plan.queue, _plan.bucket, _plan.first_page, _next,
            case when end_pass.updates > 0 then clock_timestamp() - _plan.began else interval '0 s' end);
    end if;
    return null;
end
$$;
