-- pgcombine_internal.feed_lag(queue) → double precision
-- Returns the age in seconds of the oldest kept change that a registered consumer of the queue's feed hasn't read: 0 if
-- all consumers have read all changes, null if no consumer is registered.
-- Runs with its owner's rights, for roles that monitor or work.
-- Errors: 42501 the caller lacks the right monitor.
create or replace function pgcombine_internal.feed_lag(queue text)
returns double precision
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _oldest timestamptz;
begin
    perform pgcombine_internal.require_right(null, 'monitor', pgcombine_internal.caller());
    if not exists (select from pgcombine.feed_consumer c where c.queue = feed_lag.queue) then
        return null;
    end if;
    execute format('select min(o.at)
        from pgcombine.change_bucket b
        cross join lateral (
            select min(coalesce((c.after ->> b.bucket::text)::bigint, 0)) as after
            from pgcombine.feed_consumer c where c.queue = b.queue
        ) p
        cross join lateral (
            select c._commit_timestamp as at from pgcombine.%I c
            where c._bucket = b.bucket and c._sequence > p.after order by c._sequence limit 1
        ) o
        where b.queue = $1 and b.last > p.after', feed_lag.queue || '_changes')
    into _oldest using feed_lag.queue;
    return greatest(0, extract(epoch from clock_timestamp() - coalesce(_oldest, clock_timestamp())));
end
$$;
