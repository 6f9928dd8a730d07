-- pgcombine_internal.regenerate_changes(queue)
-- Creates or replaces the wake-up trigger of a queue's changes and, if they are read as a feed, its functions
-- <feed>_read and <feed>_snapshot. The trigger's channel is 'pgcombine.changes <queue>'. Since the name has a space, it
-- can't be the channel of a queue.
-- <feed>_read([after, most, compact, upto]) returns the offset after a portion of changes, and the portion. Its first
-- row has only the offset, in the column _after. The other rows have the changes, in the order of _bucket and
-- _sequence. Its parameters:
--   after    the offset after which the portion begins; {}: the first kept change. Null: the portion is empty, and
--            _after is the present offset
--   most     maximum number of changes, spread over the buckets. Null: no maximum
--   compact  whether the changes of a key in the portion become one row, with the old values of the first change and
--            everything else of the last one. A key that has no value before the portion and none after it has no row
--   upto     the offset up to which the portion reaches, instead of most. The portion has no changes of a bucket that
--            upto lacks. Null: the result of feed_offset(feed, after, most)
-- <feed>_snapshot() returns the present offset, and the values of the queue from the same snapshot. Its first row has
-- only the offset, in the column _after. The other rows have only keys and values.
-- Both functions run with their owner's rights, for roles that may read the queue.
create or replace function pgcombine_internal.regenerate_changes(queue text)
returns void
language plpgsql
as $$
declare
    _feed constant pgcombine.change_log := (
        select l from pgcombine.change_log l where l.queue = regenerate_changes.queue);
    _olds constant text := pgcombine_internal.column_list(_feed.queue, 'value', '{old}');
    _news constant text := pgcombine_internal.column_list(_feed.queue, 'value', '{new}');
    _parts constant jsonb := jsonb_build_object(
        'feed', quote_literal(_feed.feed),
        'read', quote_ident(_feed.feed || '_read'),
        'snapshot', quote_ident(_feed.feed || '_snapshot'),
        'values', format('pgcombine.%I', _feed.queue || '_values'),
        'partition', quote_literal(_feed.queue || '_values_b0000'),
        'types', concat_ws(', ',
            pgcombine_internal.column_list(_feed.queue, 'key', '{name} {type}'),
            pgcombine_internal.column_list(_feed.queue, 'value', '{old} {type}'),
            pgcombine_internal.column_list(_feed.queue, 'value', '{new} {type}')),
        'value_types', pgcombine_internal.column_list(_feed.queue, form => '{name} {type}'),
        'nulls', pgcombine_internal.column_list(_feed.queue, form => 'null::{type}'),
        'columns', pgcombine_internal.column_list(_feed.queue),
        'keys', pgcombine_internal.column_list(_feed.queue, 'key'),
        'forms', pgcombine_internal.column_list(_feed.queue, 'key', '{name}::text'),
        'olds', _olds, 'news', _news,
        'portion', format('select f.* from jsonb_each_text(_portion.high) u cross join lateral (
                select * from pgcombine.%I f
                where f._bucket = u.key::integer and f._sequence > (_portion.low ->> u.key)::bigint
                  and f._sequence <= u.value::bigint
                order by f._sequence limit u.value::bigint - (_portion.low ->> u.key)::bigint) f',
            _feed.queue || '_changes'),
        'first_olds', pgcombine_internal.column_list(_feed.queue, 'value', 'first_value({old}) over same as {old}'),
        'shown', format('_bucket, _sequence, case when row(%s) is null then ''insert'' when row(%s) is null '
            'then ''delete'' else ''update'' end, _commit_version, _commit_timestamp', _olds, _news));
begin
    execute format('create or replace trigger pgcombine_wake after insert on pgcombine.%I
                    for each statement execute function pgcombine_internal.wake(%L)',
        _feed.queue || '_changes', 'changes ' || _feed.queue);
    if _feed.feed is null then
        return;
    end if;
    execute pgcombine_internal.fill($create$
create or replace function pgcombine.{read}(after jsonb default null, most integer default null,
    compact boolean default false, upto jsonb default null)
returns table (_after jsonb, _bucket integer, _sequence bigint, _change_type text, _commit_version bigint,
    _commit_timestamp timestamptz, {types})
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $function$
#variable_conflict use_column
declare
    _feed constant pgcombine.change_log := pgcombine_internal.feed_reader({feed});
    _portion constant record := pgcombine_internal.feed_portion({feed}, {read}.after, {read}.most, {read}.upto);
    _found bigint;
begin
    _after := _portion.next;
    return next;
    if {read}.compact then
        return query
        with pgcombine_change as materialized ({portion})
        select null::jsonb, {shown}, {keys}, {olds}, {news}
        from (
            -- equal keys may have different texts (1 and 1.0), which are two keys for some consumers
            select _bucket, _sequence, _commit_version, _commit_timestamp, {keys}, {first_olds}, {news},
                   lead(_sequence) over same is null as pgcombine_last
            from pgcombine_change window same as (partition by {keys}, {forms} order by _sequence
                rows between unbounded preceding and unbounded following)
        ) f
        where pgcombine_last and not (row({olds}, {news}) is null)
          and (select pgcombine_internal.feed_whole({feed}, count(*), _portion.changes) from pgcombine_change)
        order by 2, 3;
    else
        return query
        select null::jsonb, {shown}, {keys}, {olds}, {news}
        from ({portion}) f
        order by 2, 3;
        get diagnostics _found = row_count;
        perform pgcombine_internal.feed_whole({feed}, _found, _portion.changes);
    end if;
end
$function$;
comment on function pgcombine.{read} is 'Returns the offset after a portion of a feed''s changes, and these changes.';
create or replace function pgcombine.{snapshot}()
returns table (_after jsonb, {value_types})
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $function$
#variable_conflict use_column
declare
    _feed constant pgcombine.change_log := pgcombine_internal.feed_reader({feed});
begin
    return query
    select pgcombine_internal.change_vector(_feed.queue), {nulls} union all select null, {columns} from {values};
    -- the query finds the partition that the snapshot sees, and to_regclass the present one of the same name
    perform pgcombine_internal.require((select c.oid from pg_class c
        where c.relname = {partition} and c.relnamespace = 'pgcombine'::regnamespace)
            = to_regclass(format('pgcombine.%I', {partition})), '40001',
        'the queue was rebucketed after the snapshot', 'begin a new transaction');
end
$function$;
comment on function pgcombine.{snapshot} is 'Returns the present offset of the feed, and all values as of that offset.'
$create$, _parts);
end
$$;
