-- pgcombine_internal.fail_pass(queue, bucket, sqlstate, error [, mask, slice]) → (attempts, isolate, smaller)
-- Records that a pass over a bucket failed and was rolled back. All workers then leave the bucket alone for a while
-- that grows from a fifth of a second to a minute (see due). A pass that takes all deletes the record.
-- A pass that the server cancelled, for example at the statement timeout, would take as long the next time. So
-- plan_pass then takes slices of its keys. No key is quarantined for it, since no error shows that a key is at fault.
--   mask, slice  those of the pass's plan
--   attempts     number of passes that failed in a row
--   isolate      whether to search for the keys at fault: after quarantine_after attempts, if a key can cause the error
--   smaller      whether the pass was cancelled and the next one takes a smaller slice or another one
-- Tables written: pgcombine.failure.
-- Errors: PC001 unknown queue; 42501 the caller may not run passes over it.
create or replace function pgcombine_internal.fail_pass(queue text, bucket integer, sqlstate text, error text,
    mask bigint default null, slice bigint default null, out attempts integer, out isolate boolean, out smaller boolean)
language plpgsql
as $$
declare
    _queue constant pgcombine.queue := pgcombine_internal.require_queue(fail_pass.queue);
    _tried constant bigint := coalesce(mask, 0) + 1 + coalesce(slice, 0);
    _cancelled constant boolean := coalesce(sqlstate = '57014', false);
    _failure pgcombine.failure;
    _slow bigint[];
begin
    perform pgcombine_internal.require_right(fail_pass.queue, 'work');
    select f.* into _failure from pgcombine.failure f where f.queue = _queue.queue and f.bucket = fail_pass.bucket;
    _slow := coalesce(_failure.slow, '{}');
    smaller := _cancelled and not _tried = any (_slow);
    if smaller then
        _slow := _slow || _tried;
        -- three of the smallest slices took too long and no pass has succeeded since: the size isn't the reason
        if (select count(*) >= 3 from unnest(_slow) s where s >= 1024)
           and not exists (select from pgcombine.pass p where p.queue = _queue.queue and p.bucket = fail_pass.bucket and p.tx > _failure.tx) then
            _slow := '{}';
            smaller := false;
        end if;
    end if;
    insert into pgcombine.failure as f (queue, bucket, attempts, sqlstate, error, since, last, retry_at, slow)
    values (_queue.queue, fail_pass.bucket, 1, fail_pass.sqlstate, fail_pass.error, clock_timestamp(), clock_timestamp(),
            clock_timestamp() + interval '0.2 s', _slow)
    on conflict on constraint failure_pkey do update
    set attempts = least(f.attempts, 1000000) + 1, sqlstate = excluded.sqlstate, error = excluded.error, last = excluded.last,
        retry_at = clock_timestamp() + least(60, 0.1 * 2 ^ least(f.attempts + 1, 20)) * (0.75 + random() / 2) * interval '1 s',
        slow = excluded.slow,
        tx = case when _cancelled and not fail_pass.smaller then txid_current() else f.tx end -- slow_slice then tries the other slices first
    returning f.attempts into fail_pass.attempts;
    isolate := fail_pass.attempts >= _queue.quarantine_after and not pgcombine_internal.blameless(fail_pass.sqlstate);
exception when foreign_key_violation then
    perform pgcombine_internal.require_queue(fail_pass.queue); -- raises PC001 if the queue was dropped during the pass
    raise;
end
$$;
