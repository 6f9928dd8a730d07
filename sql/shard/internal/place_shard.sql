-- pgcombine_internal.place_shard(queue, shard)
-- Makes a shard's foreign tables for its node (see front_shard), in place of those for another node. If the node's
-- node_table is missing, makes it, too.
-- Each foreign table of a shard is the only partition of its parent. So the function needs an exclusive lock on this
-- parent alone, and the other shards stay in use.
create or replace function pgcombine_internal.place_shard(queue text, shard integer)
returns void
language plpgsql
as $$
declare
    _node constant name := (
        select s.node from pgcombine.front_shard s where (s.queue, s.shard) = (place_shard.queue, place_shard.shard));
    _table constant text := pgcombine_internal.node_table(_node);
    _relation record;
begin
    for _relation in
        select format('%s_%s', t.name, lpad(place_shard.shard::text, 2, '0')) as name, t.remote, t.options
        from (values
            (place_shard.queue || '_updates', pgcombine_internal.shard_name(place_shard.queue, shard) || '_updates',
             'batch_size ''100'''),
            (place_shard.queue || '_values', pgcombine_internal.shard_name(place_shard.queue, shard) || '_values',
             'updatable ''false'', async_capable ''true'', fetch_size ''10000'''),
            (place_shard.queue || '_current', pgcombine_internal.shard_name(place_shard.queue, shard) || '_current',
             'updatable ''false'', async_capable ''true'', fetch_size ''10000'''),
            (place_shard.queue || '_token', 'token', 'batch_size ''1''')) t (name, remote, options)
    loop
        if to_regclass(format('pgcombine_internal.%I', _relation.name || '_on')) is not null then
            execute format('drop foreign table pgcombine_internal.%I', _relation.name || '_on');
        end if;
        execute format('create foreign table pgcombine_internal.%I partition of pgcombine_internal.%I
                for values with (modulus 1, remainder 0) server %I
                options (schema_name ''pgcombine'', table_name %L, truncatable ''false'', %s)',
            _relation.name || '_on', _relation.name, _node, _relation.remote, _relation.options);
    end loop;
    if to_regclass(format('pgcombine_internal.%I', _table)) is null then
        execute format('create foreign table pgcombine_internal.%I (queue text, pending bigint,
            lag_seconds double precision, updates_per_second_1m double precision, failing_buckets bigint,
            quarantined_keys bigint, last_pass_at timestamptz) server %I
            options (schema_name ''pgcombine'', table_name ''queue_stat'', updatable ''false'')', _table, _node);
        -- the node decides which rows a role sees
        execute format('grant select on pgcombine_internal.%I to public', _table);
    end if;
end
$$;
