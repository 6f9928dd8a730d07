-- pgcombine_internal.reclaim_changes(queue) → boolean
-- Lets passes write a queue's changes into the next segment after a quarter of the retention, and truncates the
-- segments that were closed longer than the retention ago. Returns whether it changed the segment in use or truncated
-- one. While another session runs the function for the queue, the call does nothing.
-- A segment stays while an export has to deliver changes in it. It also stays while it holds changes after the offset
-- of a registered consumer, and all segments together have at most max_bytes. A segment that a session is reading stays
-- for a later call. The next segment must be empty; otherwise the present one grows. A pass that began before its
-- segment was closed may still write into it. Its changes may be truncated early, but then consumers that haven't read
-- them get an error (PC051): the transaction that truncates records the truncated sequences, and <feed>_read counts the
-- changes that it finds.
-- Tables written: change_log, <queue>_changes.
create or replace function pgcombine_internal.reclaim_changes(queue text)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '20ms'
as $$
declare
    _log pgcombine.change_log;
    _tables text[];
    _next integer;
    _last jsonb; -- the last sequence of each bucket in a segment
    _done boolean := false;
begin
    select l.* into _log from pgcombine.change_log l
    where l.queue = reclaim_changes.queue for no key update skip locked;
    if not found then
        return false;
    end if;
    _tables := array(select format('pgcombine.%I', _log.queue || '_changes_s' || s)
                     from generate_series(0, cardinality(_log.closed) - 1) s);
    if clock_timestamp() >= _log.since + _log.retention / 4 then
        _next := (_log.segment + 1) % cardinality(_tables);
        if pg_relation_size(_tables[_log.segment + 1]) = 0 then
            update pgcombine.change_log l set since = clock_timestamp() where l.queue = _log.queue;
        elsif pg_relation_size(_tables[_next + 1]) = 0 then
            _log.closed[_log.segment + 1] := clock_timestamp();
            _log.segment := _next;
            update pgcombine.change_log l set segment = _next, since = clock_timestamp(), closed = _log.closed
            where l.queue = _log.queue;
            _done := true;
        end if;
    end if;
    for _segment in 1 .. cardinality(_tables) loop
        if _log.closed[_segment] is null and _segment <> _log.segment + 1
            and pg_relation_size(_tables[_segment]) > 0
        then -- a pass that began before the segment was closed has written into it after its truncation
            _log.closed[_segment] := clock_timestamp();
            update pgcombine.change_log l set closed = _log.closed where l.queue = _log.queue;
        end if;
        continue when (_log.closed[_segment] <= clock_timestamp() - _log.retention) is not true
            or _segment = _log.segment + 1;
        begin
            execute format('lock table only %s in access exclusive mode nowait', _tables[_segment]);
            execute format('select coalesce(jsonb_object_agg(b.bucket, m.last), ''{}'')
                from pgcombine.change_bucket b
                cross join lateral (select max(_sequence) as last from %s where _bucket = b.bucket) m
                where b.queue = $1 and m.last is not null', _tables[_segment]) into _last using _log.queue;
            continue when exists (
                    select from jsonb_each_text(_last) l
                    join pgcombine.export_bucket x on x.bucket = l.key::integer and x.after < l.value::bigint
                    join pgcombine.export e on e.export = x.export and e.queue = _log.queue)
                or (select sum(pg_total_relation_size(t)) from unnest(_tables) t) <= _log.max_bytes
                and exists (
                    select from pgcombine.feed_consumer c cross join jsonb_each_text(_last) l
                    where c.queue = _log.queue
                      and coalesce((c.after ->> l.key)::bigint, _log.number << 40) < l.value::bigint);
            execute format('truncate %s', _tables[_segment]);
            _log.closed[_segment] := null;
            _log.reclaimed := _log.reclaimed || coalesce((
                select jsonb_object_agg(l.key, l.value::bigint) from jsonb_each_text(_last) l
                where l.value::bigint > coalesce((_log.reclaimed ->> l.key)::bigint, 0)), '{}');
            update pgcombine.change_log l
            set closed = _log.closed, reclaimed = _log.reclaimed,
                turns = array( -- without the rebuckets before which no change is kept
                    select t.turn from unnest(_log.turns) with ordinality t (turn, place)
                    where exists (
                        select from jsonb_each_text(t.turn) e
                        where e.value::bigint > coalesce((_log.reclaimed ->> e.key)::bigint, _log.number << 40))
                    order by t.place)
            where l.queue = _log.queue;
            _done := true;
        exception when lock_not_available then
            null;
        end;
    end loop;
    return _done;
end
$$;
