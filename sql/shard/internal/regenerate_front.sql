-- pgcombine_internal.regenerate_front(queue)
-- Creates or replaces the generated functions of a front. <queue>_enqueue appends updates, as the function of this name
-- does for a queue. It isn't created if enqueue_function returns null for the front's columns.
-- pgcombine_internal.<queue>_shard_number returns the shard of a key. An upgrade calls regenerate_front for each front.
-- Errors: PC001 unknown front. Of <queue>_enqueue: PC004 the arrays are of different lengths.
create or replace function pgcombine_internal.regenerate_front(queue text)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _front constant pgcombine.front := pgcombine_internal.require_front(regenerate_front.queue);
    _parts jsonb := jsonb_build_object('queue', _front.queue,
        'updates', format('pgcombine.%I', _front.queue || '_updates'),
        'names', pgcombine_internal.front_list(_front.columns));
begin
    execute format('create or replace function pgcombine_internal.%I(%s) returns integer language sql stable as %L',
        _front.queue || '_shard_number', pgcombine_internal.front_list(_front.columns, 'key', '{name} {type}'), (
            select format('select case %s end', string_agg(pgcombine_internal.fill(
                'when satisfies_hash_partition({updates}::regclass, {shards}, {shard}, {keys}) then {shard}',
                _parts || jsonb_build_object('updates', quote_literal(_parts ->> 'updates'), 'shards', _front.shards,
                    'shard', s, 'keys', pgcombine_internal.front_list(_front.columns, 'key', '${number}'))), ' '
                order by s))
            from generate_series(0, _front.shards - 1) s));
    if exists (
        select from jsonb_array_elements(_front.columns) c
        join pg_type t on t.oid = (c ->> 'type')::regtype
        join pg_type b on b.oid = pgcombine_internal.base_type(t.oid)
        where t.typarray = 0 or b.typcategory in ('A', 'C') or c ->> 'name' ~ '^\$[0-9]+$')
    then
        return; -- as for a queue: see enqueue_function
    end if;
    _parts := _parts || jsonb_build_object(
        'arrays', pgcombine_internal.front_list(_front.columns, form => 'unnest(${number})'),
        'counts', concat_ws(', ',
            pgcombine_internal.front_list(_front.columns, 'key', 'coalesce(cardinality(${number}), 0)'),
            pgcombine_internal.front_list(_front.columns, 'value', 'cardinality(${number})')),
        'defaults', (
            select string_agg(pgcombine_internal.fill('
    if ${number} is null then
        ${number} := array_fill({initial}::{type}, array[_count]);
    end if;', jsonb_build_object('number', n, 'initial', quote_nullable(c ->> 'initial'), 'type', c ->> 'type')), '')
            from jsonb_array_elements(_front.columns) with ordinality e (c, n) where c ->> 'role' = 'value'));
    execute format('create or replace function pgcombine.%I(%s) returns bigint language plpgsql as %L',
        _front.queue || '_enqueue', concat_ws(', ',
            pgcombine_internal.front_list(_front.columns, 'key', '{name} {type}[]'),
            pgcombine_internal.front_list(_front.columns, 'value', '{name} {type}[] default null')),
        pgcombine_internal.fill($body$
declare
    _count constant integer := coalesce(cardinality($1), 0);
begin
    if _count <> any (array[{counts}]) then
        raise exception 'the columns of the updates for queue "{queue}" are of different lengths: %', array[{counts}]
            using errcode = 'PC004', hint = 'give an array of equal length for each column';
    end if;{defaults}
    insert into {updates} ({names}) select {arrays};
    return _count;
end
$body$, _parts));
    execute format('comment on routine pgcombine.%I is '
        '''Appends updates, an array for each column; returns their number.''', _front.queue || '_enqueue');
end
$$;
