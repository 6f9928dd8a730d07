-- call pgcombine.expire(queue)
-- Removes the keys that have expired, and returns their number as the parameter removed. Keys with updates that the
-- pass takes don't count. Workers remove expired keys on their own. Use this call in cron, and in programs without
-- workers. Call the procedure outside of a transaction: it commits after each pass. A pass claims a bucket, combines
-- its pending updates, reads 8 MB of its values and removes at most 10000 keys. If another session keeps a bucket
-- claimed for five seconds, the call leaves the bucket. The call doesn't touch a paused queue.
-- A conflict with another session ends the call (40001, 40P01, 55P03), and so do PC008, PC012 and a cancellation. If a
-- pass fails with another error, it runs again without removing expired keys. If that fails, too, the call leaves the
-- bucket; otherwise it continues after the pages of the failed pass. After all other passes, the call raises the last
-- error.
-- Tables written: those of run_pass.
-- Errors: PC001 unknown queue; PC003 (or 2D000) called in a transaction; PC008 the queue has observers in Python; PC012
-- the database is a copy in which post_restore has not run yet; 40001 observers or the condition changed during a pass;
-- 40P01 a deadlock; 55P03 a lock wasn't granted in time; 42501 the caller lacks the right work;
-- those of observers, of combiners and of the condition.
create or replace procedure pgcombine.expire(queue text, inout removed bigint default null)
language plpgsql
as $$
declare
    _queue pgcombine.queue;
    _now pgcombine.queue;
    _bucket integer;
    _page bigint; -- the first page of the next pass; null: there are no more
    _failed boolean; -- whether a pass has failed to remove expired keys from _page on
    _done record;
    _tries integer;
    _sqlstate text;
    _error text;
begin
    call pgcombine_internal.begin_alone('expire');
    perform pgcombine_internal.require_queue(expire.queue);
    perform pgcombine_internal.require_right(expire.queue, 'work');
    removed := 0;
    loop
        -- between two passes the queue may be paused, dropped or rebucketed
        select q.* into _now
        from pgcombine.queue q where q.queue = expire.queue and not q.paused and q.expire_when is not null;
        if (_now.buckets, _now.partitions) is distinct from (_queue.buckets, _queue.partitions) then
            _bucket := 0;
            _page := 0;
            _failed := false;
            _tries := 0;
        end if;
        _queue := _now;
        exit when (_bucket < _queue.buckets) is not true;
        begin
            select p.* into _done
            from pgcombine_internal.run_pass(
                expire.queue, _bucket, from_page => case when not _failed then _page end) p;
            set constraints all immediate; -- deferred constraints fail here, not at the commit
            if _done.bucket is null then
                _tries := _tries + 1;
            else
                _tries := 0;
                removed := removed + _done.expired;
                if not _failed then
                    _page := _done.next_page;
                elsif not _done.more then -- the pass succeeded without the pages, so they caused the failure
                    _page := pgcombine_internal.schedule_expiry(
                        expire.queue, _bucket, _page, _page + 1024, '0 s', _sqlstate, _error);
                    _failed := false;
                end if;
            end if;
        exception
            when serialization_failure or deadlock_detected or lock_not_available
                or sqlstate 'PC008' or sqlstate 'PC012' then
                raise;
            when assert_failure or others then
                _sqlstate := sqlstate;
                _error := sqlerrm;
                _page := case when not _failed then _page end;
                _failed := true;
        end;
        commit;
        set local transaction isolation level read committed;
        if _page is null or _tries = 100 then
            _bucket := _bucket + 1;
            _page := 0;
            _failed := false;
            _tries := 0;
        end if;
        perform pg_sleep(0.05) where _tries > 0;
    end loop;
    if _error is not null then
        raise exception using errcode = _sqlstate, message = _error,
            hint = 'pgcombine.expiry has the pages that the scan skipped; if a pass failed even without removing '
                'expired keys, the rest of its bucket was left';
    end if;
end
$$;
