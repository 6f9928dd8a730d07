-- pgcombine_internal.shards_of(queue, keys) → integer[]
-- Returns the shards of keys of a front, as numbers in the order of the keys.
--   keys  one element for each key column, in order. The element is the text of an array of that column's values. The
--         arrays are of equal length
-- Errors: PC001 unknown front; those of a cast of a text to the type of its key column.
create or replace function pgcombine_internal.shards_of(queue text, keys text[])
returns integer[]
language plpgsql stable
as $$
declare
    _front constant pgcombine.front := pgcombine_internal.require_front(queue);
    _shards integer[];
begin
    execute format('select array(select pgcombine_internal.%I(%s) from unnest(%s) k (%s))',
        _front.queue || '_shard_number',
        pgcombine_internal.front_list(_front.columns, 'key', 'k{number}::{type}'),
        pgcombine_internal.front_list(_front.columns, 'key', '$1[{number}]::text[]'),
        pgcombine_internal.front_list(_front.columns, 'key', 'k{number}'))
    into _shards using keys;
    return _shards;
end
$$;
