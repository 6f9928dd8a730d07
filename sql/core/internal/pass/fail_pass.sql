-- pgcombine_internal.fail_pass(queue, bucket, sqlstate, error) → (attempts, bisect, smaller)
-- Records that a pass over a bucket failed and was rolled back. Workers then leave the bucket alone for a time that
-- grows with each failure, from a fifth of a second to about a minute. A pass that takes all updates deletes the
-- record.
-- A pass that the server cancelled, for example at the statement timeout, would take as long the next time. So the next
-- pass takes half as many updates, and workers run it at once (see smaller). forget_failure doubles the number after a
-- success. No search for failing keys follows a cancelled pass, but a search may lower the number, too.
-- After a failure, passes over the bucket remove no expired keys until one has taken all updates. If the failed pass
-- also removed expired keys, the function records their first page for forget_failure.
--   attempts  number of passes that failed in a row
--   bisect    whether to search for the failing keys: after quarantine_after attempts, if a key can cause the error
--   smaller   whether the pass was cancelled and the next one takes fewer updates, or those of other keys. False if all
--             pending updates belong to one hash range, and after several failures in a row with as few updates as
--             possible
-- Tables written: pgcombine.failure.
-- Errors: PC001 unknown queue; 42501 the caller lacks the right work.
create or replace function pgcombine_internal.fail_pass(queue text, bucket integer, sqlstate text, error text,
    out attempts integer, out bisect boolean, out smaller boolean)
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(fail_pass.queue);
    _limit bigint;
    _first boolean; -- whether no failure of the bucket is recorded yet
    _page bigint; -- the first page whose expired keys the pass removed; null: it removed none
    _log record;
    _pending bigint;
    _ranges bigint; -- number of hash ranges with pending updates
    _most bigint; -- about how many updates the pass took
begin
    perform pgcombine_internal.require_right(fail_pass.queue, 'work');
    select f.pass_limit into _limit
    from pgcombine.failure f where f.queue = _queue.queue and f.bucket = fail_pass.bucket;
    _first := not found;
    if fail_pass.sqlstate = '57014' or _first and _queue.expire_when is not null then
        select l.tables, l.condition into _log from pgcombine_internal.bucket_log(_queue.queue, fail_pass.bucket) l;
        execute format('select count(*), count(distinct %s & 4095) from %s', pgcombine_internal.key_hash(_queue.queue),
            pgcombine_internal.log_sql(_queue.queue, _log.tables, _log.condition)) into _pending, _ranges;
    end if;
    if _first and _queue.expire_when is not null and _pending <= _queue.pass_limit then
        select r.page into _page from (select) one
        left join pgcombine.expiry r on (r.queue, r.bucket) = (_queue.queue, fail_pass.bucket)
        where (r.due <= clock_timestamp()) is not false;
        _page := case when found then coalesce(_page, 0) end;
    end if;
    smaller := false;
    if fail_pass.sqlstate = '57014' then
        _most := least(_pending,
            case when _limit is null then greatest(_queue.pass_limit, _pending / 32) else greatest(_limit, 1) end);
        smaller := _ranges > 1 and (_limit > -8) is not false;
        _limit := case when _most > 1 then _most / 2 else greatest(coalesce(_limit, 1) - 1, -8) end;
    end if;
    insert into pgcombine.failure as f
        (queue, bucket, attempts, sqlstate, error, since, last, retry_at, pass_limit, page)
    values (_queue.queue, fail_pass.bucket, 1, fail_pass.sqlstate, fail_pass.error, clock_timestamp(),
            clock_timestamp(), clock_timestamp() + case when smaller then 0 else 0.2 end * interval '1 s',
            _limit, _page)
    on conflict on constraint failure_pkey do update
    set attempts = least(f.attempts, 1000000) + 1, sqlstate = excluded.sqlstate, error = excluded.error,
        last = excluded.last,
        retry_at = clock_timestamp() + case when smaller then 0
            else least(60, 0.1 * 2 ^ least(f.attempts + 1, 20)) * (0.75 + random() / 2) end * interval '1 s',
        pass_limit = excluded.pass_limit, page = null -- passes after a failure remove no expired keys
    returning f.attempts into fail_pass.attempts;
    bisect := fail_pass.attempts >= _queue.quarantine_after
        and not pgcombine_internal.is_transient(fail_pass.sqlstate);
exception when foreign_key_violation then
    perform pgcombine_internal.require_queue(fail_pass.queue); -- raises PC001 if the queue was dropped during the pass
    raise;
end
$$;
