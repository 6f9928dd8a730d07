-- pgcombine_internal.plan_pass(queue, bucket [, mask, slice, observers]) → plan
-- Plans the next pass over a bucket that the caller has claimed. All decisions about a pass are made here.
--   mask, slice  only keys with hash & mask = slice. Null: all keys. But if more than pass_limit updates are pending, or
--                these take more than 64 megabytes, passes take slices of the keys in turn, so that none takes much
--                more than the limit. After passes that took too long the limit is lower (see fail_pass)
--   observers    Python observers that the caller can run
-- Of the plan:
--   pass, began  the pass's number, and the time
--   mark         the snapshot whose updates the pass takes; a later statement's snapshot may be younger
--   tables, condition  see bucket_log
--   pending      number of updates; or 5000 if there are more, but not far more than pass_limit
--   more         whether updates of other keys may be pending: true for each slice that the caller names
--   held         whether the queue has keys in quarantine, whose updates then go there
--   observe      the Python observers, in the order in which they run
-- Errors: PC001 unknown queue; PC003 no such slice; PC008 Python observers are declared that the caller lacks.
create or replace function pgcombine_internal.plan_pass(queue text, bucket integer, mask bigint default null, slice bigint default null,
    observers text[] default '{}')
returns pgcombine.plan
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(plan_pass.queue);
    _plan pgcombine.plan;
    _log record; -- the pending updates of all keys
    _source text;
    _most bigint; -- updates that the pass takes
    _turn bigint; -- after a pass that took too long
    _counted constant integer := 5000;
begin
    _plan.queue := _queue.queue;
    _plan.bucket := plan_pass.bucket;
    -- not later than the snapshot, by which monitoring goes
    _plan.began := case current_setting('transaction_isolation') when 'read committed' then clock_timestamp() else now() end;
    _plan.observe := array(
        select o.observer from pgcombine.observer o where o.queue = _queue.queue and o.language = 'python' order by o.position);
    if not _plan.observe <@ plan_pass.observers then
        raise exception 'queue "%" has observers in Python that can''t be run here: %', _queue.queue,
                (select string_agg(quote_ident(o), ', ') from unnest(_plan.observe) o where not o = any (plan_pass.observers))
            using errcode = 'PC008', hint = 'pgcombine worker --app module:attribute runs them';
    end if;
    _plan.mark := pgcombine_internal.current_mark();
    select l.pass, l.mask, l.marks, l.tables, l.condition into _log from pgcombine_internal.bucket_log(_queue.queue, plan_pass.bucket, _plan.mark) l;
    _plan.pass := _log.pass + 1;
    _plan.tables := _log.tables;
    _plan.condition := _log.condition;
    _plan.held := exists (select from pgcombine.quarantined_key k where k.queue = _queue.queue);
    _plan.mask := plan_pass.mask;
    _plan.slice := plan_pass.slice;

    if _plan.mask is null and cardinality(_plan.tables) = 0 then
        _plan.pending := 0;
    elsif _plan.mask is null then
        _source := pgcombine_internal.log_sql(_queue.queue, _plan.tables, _plan.condition);
        select f.pass_limit, f.attempts into _most, _turn from pgcombine.failure f
        where f.queue = _queue.queue and f.bucket = plan_pass.bucket and f.pass_limit is not null;
        _most := greatest(coalesce(_most, _queue.pass_limit), 1);
        execute format('select count(*) from (select from %s limit %s) as pending', _source, least(_most + 1, _counted))
        into _plan.pending;
        -- A count of all updates takes a tenth of the time of a pass, so it is done only if there are far more than the
        -- limit. A pass over slightly more does no harm.
        if _plan.pending > _most
           or _plan.pending = _counted and pgcombine_internal.updates_about(_queue.queue, _plan.tables) > 1.25 * _most
           or _plan.pending > 1 and pgcombine_internal.takes_bytes(_queue.queue, 67108864, _source) then
            select s.mask, s.slice, s.updates < s.pending into _plan.mask, _plan.slice, _plan.more
            from pgcombine_internal.next_slice(_queue.queue, _source, _log.mask, _log.marks, _most, _turn) s;
        end if;
    elsif not (_plan.mask between 0 and 65535 and _plan.mask & (_plan.mask + 1) = 0 and _plan.slice between 0 and _plan.mask) then
        raise exception 'there is no slice with mask % and number %', _plan.mask, _plan.slice
            using errcode = 'PC003', hint = 'give a mask 2 ^ k - 1 up to 65535, and a slice from 0 to the mask';
    end if;
    if _plan.mask > 0 or _plan.pending is null then
        _plan.condition := concat_ws(' and ', format('%s & %s = %s', pgcombine_internal.key_hash(_queue.queue), _plan.mask, _plan.slice), _plan.condition);
        execute format('select count(*) from %s', pgcombine_internal.log_sql(_queue.queue, _plan.tables, _plan.condition)) into _plan.pending;
    end if;
    _plan.more := coalesce(_plan.more, _plan.mask > 0, false);
    return _plan;
end
$$;
