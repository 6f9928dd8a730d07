-- pgcombine_internal.feed_bounds(feed, after) → setof (bucket, low, high)
-- Checks an offset, and returns for each bucket the sequence after which a portion begins, and the sequence up to which
-- the portion may reach.
--   low   the bucket's sequence in the offset. For the offset {} a bucket begins with its first kept change. For any
--         other offset a bucket that the offset lacks begins with its first change, which must still be kept
--   high  the bucket's last sequence. But while changes from before a rebucket follow the offset, it is the bucket's
--         last sequence at the first such rebucket (or low, if that is greater). So consumers see the changes of a key
--         in order although a rebucket changes the key's bucket
-- Errors: PC050 unknown feed; PC003 the offset isn't an object of sequences by bucket, has an unknown bucket, or is
-- ahead of the feed; PC051 changes after the offset are no longer kept.
create or replace function pgcombine_internal.feed_bounds(feed text, after jsonb)
returns table (bucket integer, low bigint, high bigint)
language plpgsql stable
as $$
#variable_conflict use_column
declare
    _feed constant pgcombine.change_log := pgcombine_internal.require_feed(feed_bounds.feed);
    _last constant jsonb := pgcombine_internal.change_vector(_feed.queue);
    _low jsonb := (
        select coalesce(jsonb_object_agg(k, coalesce((_feed.reclaimed ->> k)::bigint, _feed.number << 40)), '{}')
        from jsonb_object_keys(_last) k);
    _bucket text;
    _given jsonb;
    _problem text;
    _turn jsonb;
begin
    _problem := case when jsonb_typeof(feed_bounds.after) = 'object' then null
        else format('an offset is an object of sequences by bucket, not %s', coalesce(feed_bounds.after::text, 'null'))
        end;
    for _bucket, _given in
        select a.key, a.value from jsonb_each(case when _problem is null then feed_bounds.after else '{}' end) a
    loop
        _problem := case
            when not _last ? _bucket then format('feed "%s" has no bucket %L', _feed.feed, _bucket)
            when jsonb_typeof(_given) <> 'number' or _given::text !~ E'^\\d+$'
                then format('the sequence %s of bucket %s isn''t an integer from 0 on', _given, _bucket)
            when _given::numeric > (_last ->> _bucket)::numeric
                then format('the sequence %s of bucket %s is ahead of feed "%s", whose last one is %s', _given, _bucket,
                    _feed.feed, _last ->> _bucket) end;
        exit when _problem is not null;
        if _given::bigint < (_low ->> _bucket)::bigint then
            perform pgcombine_internal.feed_whole(_feed.feed, _given::bigint, (_low ->> _bucket)::bigint);
        end if;
    end loop;
    perform pgcombine_internal.require(_problem is null, 'PC003', _problem,
        format('give an offset that pgcombine.%I has returned, or {}; if the server has lost changes, read it all '
            'again: select * from pgcombine.%I()', _feed.feed || '_read', _feed.feed || '_snapshot'));
    if feed_bounds.after <> '{}' then
        perform pgcombine_internal.feed_whole(_feed.feed, 0, 1)
        from jsonb_object_keys(_last) k
        where not feed_bounds.after ? k and _feed.reclaimed ? k limit 1;
    end if;
    _low := _low || feed_bounds.after;
    select t.turn into _turn
    from unnest(_feed.turns) with ordinality t (turn, place)
    where exists (select from jsonb_each_text(t.turn) e where e.value::bigint > (_low ->> e.key)::bigint)
    order by t.place limit 1;
    return query
    select l.key::integer, l.value::bigint,
           case when _turn is null then (_last ->> l.key)::bigint
                else greatest(l.value::bigint, (_turn ->> l.key)::bigint) end
    from jsonb_each_text(_low) l;
end
$$;
