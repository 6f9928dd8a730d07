-- pgcombine_internal.regenerate_front(queue)
-- Creates or replaces the generated functions of a front: see queue_functions, and
-- pgcombine_internal.<queue>_shard_number, which returns the shard of a key. An upgrade calls regenerate_front for each
-- front.
-- Errors: PC001 unknown front.
create or replace function pgcombine_internal.regenerate_front(queue text)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _front constant pgcombine.front := pgcombine_internal.require_front(queue);
    _updates constant text := quote_literal(format('pgcombine.%I', _front.queue || '_updates'));
begin
    execute format('create or replace function pgcombine_internal.%I(%s) returns integer language sql stable as %L',
        _front.queue || '_shard_number', pgcombine_internal.front_list(_front.columns, 'key', '{name} {type}'), (
            select format('select case %s end', string_agg(pgcombine_internal.fill(
                'when satisfies_hash_partition({updates}::regclass, {shards}, {shard}, {keys}) then {shard}',
                jsonb_build_object('updates', _updates, 'shards', _front.shards, 'shard', s,
                    'keys', pgcombine_internal.front_list(_front.columns, 'key', '$' || '{number}'))), ' ' order by s))
            from generate_series(0, _front.shards - 1) s));
    perform pgcombine_internal.create_functions(_front.queue, _front.columns);
end
$$;
