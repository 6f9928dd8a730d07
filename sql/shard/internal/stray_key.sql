-- pgcombine_internal.stray_key(queue, shard) → text
-- If a shard has keys of other shards of its front, returns a message that names one of these keys; null: it has none.
-- Reads all values and pending updates of the shard. A query of the front for such a key may not find it. The updates
-- of such a key were written to the node directly, or for another number of shards.
create or replace function pgcombine_internal.stray_key(queue text, shard integer)
returns text
language plpgsql
as $$
declare
    _front constant pgcombine.front := pgcombine_internal.require_front(queue);
    _found text;
begin
    -- "offset 0" keeps the condition from the node, which doesn't have the front's tables
    execute pgcombine_internal.fill('select row({keys})::text from (select {keys} from {table} offset 0) t
        where pgcombine_internal.{number}({keys}) <> {shard} limit 1', jsonb_build_object(
            'keys', pgcombine_internal.front_list(_front.columns, 'key'),
            'table', format('pgcombine_internal.%I', format('%s_current_%s', _front.queue, lpad(shard::text, 2, '0'))),
            'number', quote_ident(_front.queue || '_shard_number'), 'shard', shard))
    into _found;
    return format('queue "%s" has keys of other shards, such as ',
        pgcombine_internal.shard_name(_front.queue, shard)) || _found;
end
$$;
