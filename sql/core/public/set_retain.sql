-- pgcombine.set_retain(queue, retain [, silently, every])
-- Sets which keys a queue retains: workers remove keys for which the condition is false. A key for which it is null
-- stays.
--   retain    condition over the key and value columns, for example 'bucket > now() - interval ''90 days'''. now() is
--             the time at which a pass began. Null: keys don't expire
--   silently  whether observers don't see that keys expire. Otherwise they see deletions. Null: unchanged
--   every     how often workers look through a bucket for expired keys; null: unchanged
-- It takes effect with the next pass. Workers begin to look through all buckets within about a second.
-- Tables written: pgcombine.queue, retention, failure.
-- Errors: PC001 unknown queue; PC003 an invalid condition (see checked_condition) or period; 42501 the caller doesn't
-- own the queue.
create or replace function pgcombine.set_retain(queue text, retain text, silently boolean default null,
    every interval default null)
returns void
language plpgsql
as $$
declare
    _queue constant text := (pgcombine_internal.require_queue(set_retain.queue)).queue;
    _condition text;
begin
    perform pgcombine_internal.require_owner();
    if every <= interval '0' then
        raise exception 'invalid retain_every: %', every using errcode = 'PC003', hint = 'give a positive period';
    end if;
    if set_retain.retain is not null then
        _condition := pgcombine_internal.checked_condition(_queue, 'retain', set_retain.retain);
    end if;
    update pgcombine.queue q
    set retain = _condition,
        retain_silently = coalesce(set_retain.silently, q.retain_silently),
        retain_every = coalesce(set_retain.every, q.retain_every)
    where q.queue = _queue;
    perform pgcombine_internal.regenerate_pass(_queue);
    execute format('create or replace view pgcombine.%I as %s',
        _queue || '_current', pgcombine_internal.current_sql(_queue));
    update pgcombine.failure f set page = null where f.queue = _queue; -- says nothing of the new condition
    -- a row for each bucket: a pass that began before meets it as a conflict, and is run again
    insert into pgcombine.retention as r (queue, bucket, page, due)
    select b.queue, b.bucket, 0, clock_timestamp() from pgcombine.bucket b where b.queue = _queue order by b.bucket
    on conflict on constraint retention_pkey do update
    set (page, due, sqlstate, error, failed_at, failed_page) = (excluded.page, excluded.due, null, null, null, null);
end
$$;
