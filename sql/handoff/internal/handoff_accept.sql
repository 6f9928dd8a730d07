-- pgcombine_internal.handoff_accept(server, token, queue, shape, payload, servers, replicas)
--     → (applied, digest, hinted, replica_sets)
-- Accepts a write at this server, which becomes the write's coordinator. One transaction stores the token, the updates
-- that this server holds, and a hint for each other server that holds some of the updates (see handoff_put).
-- If the token is known, the updates aren't applied again. But missing hints are written, since the caller may retry a
-- write whose first coordinator is lost with its hints.
--   server        the id of this server (handoff_handshake)
--   payload       see handoff_insert_sql
--   servers       names of all servers of the queue. If all servers hold all keys, the servers that other writers have
--                 named here hold them, too, and get hints; those that were removed here get none (handoff_union)
--   replicas      number of servers that hold a key
--   applied       whether the token was new here
--   digest        digest of the payload
--   hinted        JSON array: the servers for which this server has a hint of the write
--   replica_sets  JSON: the sets of servers that hold keys of the write. The level of a write (such as quorum) must be
--                 reached in each of them
-- Tables written: <queue>_updates, with the caller's rights; those of handoff_store_tokens, handoff_put and
-- handoff_set_topology.
-- Errors: PC040 the token was used for other updates; PC041 the token is too old, more than a day ahead, or no UUID of
-- version 7; PC044 the quota of a server with backpressure is reached; PC045 a server isn't registered; those of
-- handoff_check, handoff_set_topology, handoff_apply and handoff_put.
create or replace function pgcombine_internal.handoff_accept(server uuid, token uuid, queue text, shape uuid,
    payload text, servers text[], replicas integer, out applied boolean, out digest uuid, out hinted jsonb,
    out replica_sets jsonb)
language plpgsql
as $$
declare
    _made constant timestamptz := pgcombine_internal.handoff_time(token);
    _me pgcombine.handoff_server;
    _holders text[];
    _others text[];
    _known pgcombine.handoff_queue;
    _all text[] := servers;
    _copies integer := replicas;
    _status text;
    _full text[] := '{}';
begin
    perform pgcombine_internal.portable_text();
    perform pgcombine_internal.handoff_check(server, queue, shape);
    select s.* into strict _me from pgcombine.handoff_server s;
    select q.* into _known from pgcombine.handoff_queue q where q.queue = handoff_accept.queue;
    if (_known.servers, _known.replicas) is distinct from (servers, replicas) then
        _all := pgcombine_internal.handoff_union(_known, servers, replicas, _me.removed || array(
            select s from unnest(_known.servers) s
            where s <> all (servers) and s <> _me.name
              and not exists (select from pgcombine.handoff_replica r where r.name = s)));
        _copies := case when _all = servers then replicas else cardinality(_all) end;
    end if;

    if (_known.servers, _known.replicas) is distinct from (_all, _copies) then
        -- Each server must be registered before a topology names it: handoff_register flags a new server for repair
        -- only if a topology lacks it.
        perform pgcombine_internal.require(exists (select from pgcombine.handoff_replica r
            where r.name = o.name), 'PC045',
            format('server "%s" is not registered here', o.name), format('pgcombine replicas add %s DSN', o.name))
        from unnest(_all) o (name) where o.name <> _me.name;
        perform pgcombine_internal.handoff_set_topology(queue, _all, _copies);
    end if;

    -- A new write may be as old as half of the retention. The other half is left for the delivery of its hints.
    perform pgcombine_internal.require(coalesce(_made >= now() - _me.retention / 2
            or _made >= now() - _me.retention and pgcombine_internal.handoff_remembers(token), true), 'PC041',
        format('token %s is too old: it was made at %s', token, _made),
        format('a write can be retried for %s; check the clocks: it is %s on this server', _me.retention / 2, now()));
    digest := pgcombine_internal.handoff_digest(payload);
    if replicas >= cardinality(servers) then -- all servers hold all keys, so _holders stays null
        replica_sets := jsonb_build_array(to_jsonb(servers));
    else
        execute format(
            'with placed as materialized (
                 select pgcombine_internal.handoff_placement(slot, $2, $3) as replicas
                 from (select distinct slot from (%s) n) d
             )
             select array(select distinct s from placed, unnest(replicas) s order by 1),
                    jsonb_agg(distinct to_jsonb(replicas)) from placed',
            pgcombine_internal.handoff_slot_sql(queue)) into _holders, replica_sets
        using payload, servers, replicas;
    end if;

    select t.status into _status
    from pgcombine_internal.handoff_apply(null, handoff_accept.queue, shape, array[token],
        array[digest], array[to_jsonb(_holders)], array[payload], placed => _all, replicas => _copies) t;
    perform pgcombine_internal.require(_status <> 'conflict', 'PC040',
        format('token %s was used for other updates', token),
        'use a token again only to retry the same write; give other updates a new token');
    applied := _status = 'applied';

    _others := array_remove(coalesce(_holders, _all), _me.name);
    if _others <> '{}' then
        _full := pgcombine_internal.handoff_put(queue, token, shape, digest, _holders, _others, payload);
    end if;

    hinted := to_jsonb(array(select o from unnest(_others) o where not o = any (_full)));
end
$$;
