-- pgcombine_internal.make_front(queue)
-- Makes the tables and functions of a front from its rows in the catalog. Each table has a partition for each shard, by
-- the hash of the key, or for tokens by the name of the shard's queue. The only partition of such a partition is a
-- foreign table (see place_shard).
--   <queue>_updates            the log: PostgreSQL sends each row to its node, whose default fills pgcombine_tx in
--   <queue>_values, <queue>_current  the values of all shards
--   pgcombine_internal.<queue>_token  tokens, by the names of the shards' queues
create or replace function pgcombine_internal.make_front(queue text)
returns void
language plpgsql
set standard_conforming_strings = on
set quote_all_identifiers = off
as $$
declare
    _front constant pgcombine.front := pgcombine_internal.require_front(queue);
    _keys constant text := pgcombine_internal.front_list(_front.columns, 'key');
    _columns constant text := concat_ws(', ',
        pgcombine_internal.front_list(_front.columns, 'key', '{name} {type}{collate} not null'),
        pgcombine_internal.front_list(_front.columns, 'value', '{name} {type}{collate}'));
    _table record;
    _shard integer;
begin
    for _table in
        select t.*, format('%I.%I', t.schema, _front.queue || t.name) as relation
        from (values
            ('pgcombine', '_updates', concat_ws(', ',
                 pgcombine_internal.front_list(_front.columns, 'key', '{name} {type}{collate} not null'),
                 pgcombine_internal.front_list(_front.columns, 'value', '{name} {type}{collate} default {initial}')),
             'hash (' || _keys || ')', 'The log of all shards of the front %s: insert a row for each update.'),
            ('pgcombine', '_values', _columns, 'hash (' || _keys || ')',
             'The combined values of all shards of the front %s, one row for each key.'),
            ('pgcombine', '_current', _columns, 'hash (' || _keys || ')',
             'The values of all shards of the front %s combined with the pending updates.'),
            ('pgcombine_internal', '_token', 'queue text, role text, token text collate "C"', 'list (queue)',
             'The tokens of all shards of the front %s.')) t (schema, name, columns, method, comment)
    loop
        execute format('create table %s (%s) partition by %s', _table.relation, _table.columns, _table.method);
        execute format('comment on table %s is %L', _table.relation, format(_table.comment, _front.queue));
        for _shard in select generate_series(0, _front.shards - 1) loop
            execute format('create table pgcombine_internal.%I partition of %s for values %s partition by hash (%s)',
                format('%s%s_%s', _front.queue, _table.name, lpad(_shard::text, 2, '0')), _table.relation,
                case when _table.name = '_token'
                    then format('in (%L)', pgcombine_internal.shard_name(_front.queue, _shard))
                    else format('with (modulus %s, remainder %s)', _front.shards, _shard) end,
                case when _table.name = '_token' then 'queue' else _keys end);
        end loop;
    end loop;
    perform pgcombine_internal.place_shard(_front.queue, s) from generate_series(0, _front.shards - 1) s;
    perform pgcombine_internal.regenerate_front(_front.queue);
end
$$;
