-- pgcombine_internal.front_enqueue(queue, token, updates) → bigint
-- Appends updates to a front, for enqueue and enqueue_once. Returns their number; null: there is no such front.
--   token  see enqueue_once; null: none. Each shard stores it in the transaction of its updates, since the nodes commit
--          one after the other. A retry appends the updates of the shards that don't have the token, and the result is
--          their number. So a retry must come with the same updates. Without updates no token is stored
-- Shards are taken in order, to avoid deadlocks.
-- Tables written: <queue>_updates, pgcombine.token of the nodes.
-- Errors: PC004 see checked_updates and checked_token; those of the nodes; 40001 another transaction stored the token
-- meanwhile.
create or replace function pgcombine_internal.front_enqueue(queue text, token text, updates jsonb)
returns bigint
language plpgsql
as $$
declare
    _front pgcombine.front;
    _updates jsonb;
    _parts jsonb;
    _append text;
    _shard integer;
    _rows bigint;
    _count bigint := 0;
begin
    select f.* into _front from pgcombine.front f where f.queue = front_enqueue.queue;
    if not found then
        return null;
    end if;
    select pgcombine_internal.checked_updates(_front.queue, updates, array_agg(c ->> 'name' order by n),
        count(*) filter (where c ->> 'role' = 'key'))
    into _updates
    from jsonb_array_elements(_front.columns) with ordinality e (c, n);
    _parts := jsonb_build_object('updates', format('pgcombine.%I', _front.queue || '_updates'),
        'tokens', format('pgcombine_internal.%I', _front.queue || '_token'),
        'names', pgcombine_internal.front_list(_front.columns),
        'rows', format('jsonb_populate_recordset(row(%s)::pgcombine.%I, $1)',
            pgcombine_internal.front_list(_front.columns, form => '{initial}::{type}'), _front.queue || '_updates'),
        'shard', format('pgcombine_internal.%I(%s)', _front.queue || '_shard_number',
            pgcombine_internal.front_list(_front.columns, 'key')));
    _append := pgcombine_internal.fill('insert into {updates} ({names}) select {names} from {rows}', _parts);
    if token is null then
        execute _append using _updates;
        return jsonb_array_length(_updates);
    end if;

    perform pgcombine_internal.checked_token(_front.queue, token);
    for _shard in
        execute pgcombine_internal.fill('select distinct {shard} from {rows} order by 1', _parts) using _updates
    loop
        execute pgcombine_internal.fill('insert into {tokens} (queue, role, token) values ($1, '''', $2)
            on conflict do nothing', _parts)
        using pgcombine_internal.shard_name(_front.queue, _shard), token;
        get diagnostics _rows = row_count;
        if _rows > 0 then
            execute _append || pgcombine_internal.fill(' where {shard} = $2', _parts) using _updates, _shard;
            get diagnostics _rows = row_count;
            _count := _count + _rows;
        end if;
    end loop;

    return _count;
end
$$;
