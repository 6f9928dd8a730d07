-- pgcombine.shard_of(queue, variadic key) → integer
-- Returns the number of the shard that has a key of a front.
--   key  the values of the key columns in order, as text
-- A program can group updates by shard, and write those of one node in a transaction. Such a transaction commits on
-- that node wholly or not at all.
-- Errors: PC001 unknown front; PC004 another number of values than the front has key columns; those of a cast of a text
-- to the type of its key column.
create or replace function pgcombine.shard_of(queue text, variadic key text[])
returns integer
language plpgsql stable
as $$
declare
    _front constant pgcombine.front := pgcombine_internal.require_front(queue);
    _shard integer;
begin
    perform pgcombine_internal.require(jsonb_array_length(jsonb_path_query_array(_front.columns,
            '$[*] ? (@.role == "key")')) = cardinality(key), 'PC004',
        format('a key of queue "%s" has other columns', _front.queue),
        'give a text for each key column: ' || pgcombine_internal.front_list(_front.columns, 'key'));
    execute format('select pgcombine_internal.%I(%s)', _front.queue || '_shard_number',
        pgcombine_internal.front_list(_front.columns, 'key', '$1[{number}]::{type}'))
    into _shard using key;
    return _shard;
end
$$;
