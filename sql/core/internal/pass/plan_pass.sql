-- pgcombine_internal.plan_pass(queue, bucket [, observers, from_page, range_mask, hash_range]) → plan
-- Plans the next pass over a bucket that the caller has claimed: which updates the pass takes, and in which pages it
-- removes expired keys.
--   queue      the queue's row
--   observers  Python observers that the caller can run
--   from_page  null: the pass removes no expired keys. -1: it removes those of the pages that are due. Otherwise it
--              removes those of the 1024 pages from this one on. A pass removes none while more updates are pending
--              than it takes, after a failed pass, and if the caller names a hash range
--   range_mask, hash_range  only keys with hash & range_mask = hash_range. Null: plan_pass chooses
-- Of the plan:
--   pass, began    the pass's number, and the time
--   mark           the pass takes the updates that this snapshot sees; a later statement may have a younger snapshot
--   marks, marks_mask  see bucket_marks
--   reads          for each segment, whether it may hold pending updates
--   range_mask, hash_range  only keys with hash & range_mask = hash_range. If more than pass_limit updates are pending,
--                  or these take more than 64 megabytes, passes take hash ranges in turn. So a pass takes little more
--                  than the limit, unless a 32nd of the backlog is more (see next_hash_range). After cancelled passes
--                  the limit is lower (see fail_pass)
--   more           whether updates of other keys may be pending: always true if the caller names a hash range
--                  (range_mask above 0)
--   has_quarantined  whether the queue has quarantined keys, whose updates go into the quarantine
--   first_page     the first of the 1024 pages whose expired keys the pass removes; null: none
-- Errors: PC003 no such hash range; PC008 the queue has Python observers that the caller lacks.
create or replace function pgcombine_internal.plan_pass(queue pgcombine.queue, bucket integer,
    observers text[] default '{}', from_page bigint default null, range_mask bigint default null,
        hash_range bigint default null)
returns pgcombine.plan
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := plan_pass.queue;
    _lacking text;
    _plan pgcombine.plan;
    _tables text[];
    _condition text;
    _source text;
    _failed boolean;
    _pending bigint; -- number of pending updates, counted up to _most
    _most bigint; -- maximum number of updates that the pass takes
    _turn bigint; -- after a cancelled pass: which hash range to take (see next_hash_range)
begin
    select string_agg(quote_ident(o), ', ') into _lacking
    from jsonb_array_elements_text(_queue.pass -> 'python') o where o <> all (plan_pass.observers);
    if _lacking is not null then
        raise exception 'queue "%" has observers in Python that can''t be run here: %', _queue.queue, _lacking
            using errcode = 'PC008', hint = 'pgcombine worker --app module:attribute runs them';
    end if;
    _plan.queue := _queue.queue;
    _plan.bucket := plan_pass.bucket;
    -- monitoring relies on a time that isn't later than the snapshot
    _plan.began := case current_setting('transaction_isolation') when 'read committed' then clock_timestamp()
                        else now() end;
    _plan.mark := pgcombine_internal.current_mark();
    select l.pass + 1, l.range_mask, l.marks, l.tables, l.condition
    into _plan.pass, _plan.marks_mask, _plan.marks, _tables, _condition
    from pgcombine_internal.bucket_log(_queue.queue, plan_pass.bucket, _plan.mark) l;
    _plan.has_quarantined := exists (select from pgcombine.quarantined_key k where k.queue = _queue.queue);
    if plan_pass.range_mask is not null and (
        plan_pass.range_mask between 0 and 65535 and plan_pass.range_mask & (plan_pass.range_mask + 1) = 0
        and plan_pass.hash_range between 0 and plan_pass.range_mask) is not true
    then
        raise exception 'there is no hash range % of range_mask %', plan_pass.hash_range, plan_pass.range_mask
            using errcode = 'PC003', hint = 'give a range_mask 2 ^ k - 1 up to 65535, and a hash_range from 0 to it';
    end if;
    _plan.range_mask := coalesce(plan_pass.range_mask, 0);
    _plan.hash_range := coalesce(plan_pass.hash_range, 0);
    _plan.more := _plan.range_mask > 0;
    select f.pass_limit, case when f.pass_limit is not null then f.attempts end, true into _most, _turn, _failed
    from pgcombine.failure f where f.queue = _queue.queue and f.bucket = plan_pass.bucket;

    _plan.reads := array(
        select s.name = any (_tables)
        from unnest(pgcombine_internal.segment_tables(_queue.queue, plan_pass.bucket % _queue.partitions))
             with ordinality s (name, place)
        order by s.place);
    if plan_pass.range_mask is null and (_most is not null or _queue.pass ->> 'bytes' is not null
        or (select sum(pg_relation_size(t::regclass)) from unnest(_tables) t) / 36 >= _queue.pass_limit)
    then -- an update takes 36 bytes at least, so more than the limit may be pending
        _most := greatest(coalesce(_most, _queue.pass_limit), 1);
        _source := pgcombine_internal.log_sql(_queue.queue, _tables, _condition);
        execute format('select count(*) from (select from %s limit %s) as pending', _source, _most + 1)
        into _pending;
        if _pending > _most or _pending > 1 and pgcombine_internal.takes_bytes(_queue, 67108864, _source) then
            select s.range_mask, s.hash_range, s.updates < s.pending
            into _plan.range_mask, _plan.hash_range, _plan.more
            from pgcombine_internal.next_hash_range(_queue, _source, _plan.marks_mask, _plan.marks, _most, _turn) s;
        end if;
    end if;
    if _queue.expire_when is not null and _failed is null and not _plan.more and plan_pass.range_mask is null then
        if from_page = -1 then
            select case when r.due <= clock_timestamp() then r.page end into _plan.first_page
            from (select) one left join pgcombine.expiry r on (r.queue, r.bucket) = (_queue.queue, plan_pass.bucket)
            where r.due is not null;
            if not found then
                _plan.first_page := 0;
            end if;
        else
            _plan.first_page := from_page;
        end if;
    end if;
    return _plan;
end
$$;
