-- pgcombine_internal.feed_problems(queue) → problems
-- The part of verify that checks the feeds of a queue: that their observers and functions exist, that feed_upkeep has
-- closed each segment that has changes and isn't in use, and that no kept change is missing.
create or replace function pgcombine_internal.feed_problems(queue text)
returns setof text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _feed pgcombine.feed;
begin
    for _feed in select f.* from pgcombine.feed f where f.queue = feed_problems.queue order by f.feed loop
        return query
        select format('feed "%s" has no observer "%s"', _feed.feed, o)
        from unnest(array['feed ' || _feed.feed, 'feed ' || _feed.feed || ' sequence']) o
        where not exists (select from pgcombine.observer x where (x.queue, x.observer) = (_feed.queue, o))
        union all
        select format('function pgcombine.%I is missing: run pgcombine db upgrade', _feed.feed || s)
        from unnest(array['_read', '_snapshot']) s
        where not exists (select from pg_proc p
            where p.pronamespace = 'pgcombine'::regnamespace and p.proname = _feed.feed || s)
        union all
        select format('feed "%s" has changes in segment %s, which is neither in use nor closed: run a worker',
            _feed.feed, s)
        from generate_series(0, cardinality(_feed.closed) - 1) s
        where s <> _feed.segment and _feed.closed[s + 1] is null
          and clock_timestamp() >= _feed.since + _feed.retention / 2 -- feed_upkeep is due after retention / 4
          and pg_relation_size(format('pgcombine.%I', _feed.feed || '_feed_s' || s)) > 0;
        return query execute format($query$
            select format('feed "%%s" has %%s changes of bucket %%s after sequence %%s instead of %%s',
                $1, count(f._sequence), b.bucket, b.low, b.last - b.low)
            from (select b.bucket, b.last, coalesce(($2 ->> b.bucket::text)::bigint, $3) as low
                  from pgcombine.feed_bucket b where b.feed = $1) b
            left join pgcombine.%I f on f._bucket = b.bucket and f._sequence > b.low
            group by b.bucket, b.low, b.last having count(f._sequence) <> b.last - b.low
                or count(distinct f._sequence) <> b.last - b.low or max(f._sequence) > b.last$query$,
            _feed.feed || '_feed') using _feed.feed, _feed.reclaimed, _feed.number << 40;
    end loop;
end
$$;
