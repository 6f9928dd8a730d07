-- pgcombine_internal.feed_upkeep(feed) → boolean
-- Lets passes write into the next segment of a feed after a quarter of the retention, and truncates the segments that
-- were closed longer than the retention ago. Returns whether it changed the segment in use or truncated one. While
-- another session runs the function for the feed, the call does nothing.
-- A segment stays while it holds changes after the offset of a registered consumer, and the feed has at most max_bytes.
-- A segment that a session is reading stays for a later call. The next segment must be empty; otherwise the present one
-- grows. A pass that began before its segment was closed may still write into it. Its changes may be truncated early,
-- but then consumers that haven't read them get an error (PC051): the transaction that truncates records the truncated
-- sequences, and <feed>_read counts the changes that it finds.
-- Tables written: feed, <feed>_feed.
-- Errors: PC050 unknown feed.
create or replace function pgcombine_internal.feed_upkeep(feed text)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '20ms'
as $$
declare
    _feed pgcombine.feed := pgcombine_internal.require_feed(feed_upkeep.feed);
    _tables text[];
    _next integer;
    _last jsonb; -- the last sequence of each bucket in a segment
    _done boolean := false;
begin
    select f.* into _feed from pgcombine.feed f where f.feed = _feed.feed for no key update skip locked;
    if not found then
        return false;
    end if;
    _tables := array(select format('pgcombine.%I', _feed.feed || '_feed_s' || s)
                     from generate_series(0, cardinality(_feed.closed) - 1) s);
    if clock_timestamp() >= _feed.since + _feed.retention / 4 then
        _next := (_feed.segment + 1) % cardinality(_tables);
        if pg_relation_size(_tables[_feed.segment + 1]) = 0 then
            update pgcombine.feed f set since = clock_timestamp() where f.feed = _feed.feed;
        elsif pg_relation_size(_tables[_next + 1]) = 0 then
            _feed.closed[_feed.segment + 1] := clock_timestamp();
            _feed.segment := _next;
            update pgcombine.feed f set segment = _next, since = clock_timestamp(), closed = _feed.closed
            where f.feed = _feed.feed;
            _done := true;
        end if;
    end if;
    for _segment in 1 .. cardinality(_tables) loop
        if _feed.closed[_segment] is null and _segment <> _feed.segment + 1
            and pg_relation_size(_tables[_segment]) > 0
        then -- a pass that began before the segment was closed has written into it after its truncation
            _feed.closed[_segment] := clock_timestamp();
            update pgcombine.feed f set closed = _feed.closed where f.feed = _feed.feed;
        end if;
        continue when (_feed.closed[_segment] <= clock_timestamp() - _feed.retention) is not true
            or _segment = _feed.segment + 1;
        begin
            execute format('lock table only %s in access exclusive mode nowait', _tables[_segment]);
            execute format('select coalesce(jsonb_object_agg(b.bucket, m.last), ''{}'')
                from pgcombine.feed_bucket b
                cross join lateral (select max(_sequence) as last from %s where _bucket = b.bucket) m
                where b.feed = $1 and m.last is not null', _tables[_segment]) into _last using _feed.feed;
            continue when (select sum(pg_total_relation_size(t)) from unnest(_tables) t) <= _feed.max_bytes
                and exists (
                    select from pgcombine.feed_consumer c cross join jsonb_each_text(_last) l
                    where c.feed = _feed.feed
                      and coalesce((c.after ->> l.key)::bigint, _feed.number << 40) < l.value::bigint);
            execute format('truncate %s', _tables[_segment]);
            _feed.closed[_segment] := null;
            _feed.reclaimed := _feed.reclaimed || coalesce((
                select jsonb_object_agg(l.key, l.value::bigint) from jsonb_each_text(_last) l
                where l.value::bigint > coalesce((_feed.reclaimed ->> l.key)::bigint, 0)), '{}');
            update pgcombine.feed f
            set closed = _feed.closed, reclaimed = _feed.reclaimed,
                turns = array( -- without the rebuckets before which no change is kept
                    select t.turn from unnest(_feed.turns) with ordinality t (turn, place)
                    where exists (
                        select from jsonb_each_text(t.turn) e
                        where e.value::bigint > coalesce((_feed.reclaimed ->> e.key)::bigint, _feed.number << 40))
                    order by t.place)
            where f.feed = _feed.feed;
            _done := true;
        exception when lock_not_available then
            null;
        end;
    end loop;
    return _done;
end
$$;
