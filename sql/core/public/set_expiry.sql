-- pgcombine.set_expiry(queue, expire_when [, silently, every])
-- Sets when the keys of a queue expire. Workers remove keys for which the condition is true.
--   expire_when  condition over the key and value columns, for example 'day < now() - interval ''90 days'''. now() is
--                the time at which a pass's transaction began. Null: keys don't expire
--   silently     whether observers don't see that keys expire. Otherwise they see deletions. Null: unchanged
--   every        how often workers scan a bucket for expired keys. Null: unchanged
-- The change takes effect with the next pass. The scans of all buckets are due at once.
-- Tables written: pgcombine.queue, expiry, failure.
-- Errors: PC001 unknown queue; PC003 an invalid condition (see checked_condition) or period; 42501 the caller doesn't
-- own the schema.
create or replace function pgcombine.set_expiry(queue text, expire_when text, silently boolean default null,
    every interval default null)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _queue constant text := (pgcombine_internal.require_queue(queue)).queue;
    _condition text;
begin
    perform pgcombine_internal.require_owner();
    if every <= interval '0' then
        raise exception 'every can''t be %', every using errcode = 'PC003', hint = 'give a positive period';
    end if;
    if expire_when is not null then
        _condition := pgcombine_internal.checked_condition(_queue, 'expire_when', expire_when);
    end if;
    update pgcombine.queue q
    set expire_when = _condition,
        expire_silently = coalesce(silently, q.expire_silently),
        expire_every = coalesce(every, q.expire_every)
    where q.queue = _queue;
    perform pgcombine_internal.regenerate_pass(_queue);
    execute format('create or replace view pgcombine.%I as %s',
        _queue || '_current', pgcombine_internal.current_sql(_queue));
    -- A pass that failed while it removed expired keys makes the scan skip the keys' pages (see forget_failure). The
    -- update forgets these pages, so that they are scanned under the new condition, too.
    update pgcombine.failure f set page = null where f.queue = _queue;
    -- Each bucket gets a row, so its scan is due now. A repeatable-read pass that began earlier can't write that row
    -- (40001), and is run again.
    insert into pgcombine.expiry as r (queue, bucket, page, due)
    select b.queue, b.bucket, 0, clock_timestamp() from pgcombine.bucket b where b.queue = _queue order by b.bucket
    on conflict on constraint expiry_pkey do update
    set (page, due, sqlstate, error, failed_at, failed_page) = (excluded.page, excluded.due, null, null, null, null);
end
$$;
