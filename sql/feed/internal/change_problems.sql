-- pgcombine_internal.change_problems(queue) → problems
-- The part of verify that checks the kept changes of a queue: that the observers and the feed's functions exist, that
-- reclaim_changes has closed each segment that has changes and isn't in use, and that no kept change is missing.
create or replace function pgcombine_internal.change_problems(queue text)
returns setof text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _log pgcombine.change_log;
begin
    select l.* into _log from pgcombine.change_log l where l.queue = change_problems.queue;
    if not found then
        return;
    end if;
    return query
    select format('queue "%s" has no observer "%s"', _log.queue, o)
    from unnest(array['changes', 'changes sequence']) o
    where not exists (select from pgcombine.observer x where (x.queue, x.observer) = (_log.queue, o))
    union all
    select format('function pgcombine.%I is missing: run pgcombine db upgrade', _log.feed || s)
    from unnest(array['_read', '_snapshot']) s
    where _log.feed is not null and not exists (select from pg_proc p
        where p.pronamespace = 'pgcombine'::regnamespace and p.proname = _log.feed || s)
    union all
    select format('queue "%s" has changes in segment %s, which is neither in use nor closed: run a worker',
        _log.queue, s)
    from generate_series(0, cardinality(_log.closed) - 1) s
    where s <> _log.segment and _log.closed[s + 1] is null
      and clock_timestamp() >= _log.since + _log.retention / 2 -- reclaim_changes is due after retention / 4
      and pg_relation_size(format('pgcombine.%I', _log.queue || '_changes_s' || s)) > 0;
    return query execute format($query$
        select format('queue "%%s" has %%s changes of bucket %%s after sequence %%s instead of %%s',
            $1, count(c._sequence), b.bucket, b.low, b.last - b.low)
        from (select b.bucket, b.last, coalesce(($2 ->> b.bucket::text)::bigint, $3) as low
              from pgcombine.change_bucket b where b.queue = $1) b
        left join pgcombine.%I c on c._bucket = b.bucket and c._sequence > b.low
        group by b.bucket, b.low, b.last having count(c._sequence) <> b.last - b.low
            or count(distinct c._sequence) <> b.last - b.low or max(c._sequence) > b.last$query$,
        _log.queue || '_changes') using _log.queue, _log.reclaimed, _log.number << 40;
end
$$;
