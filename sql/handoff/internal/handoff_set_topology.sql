-- pgcombine_internal.handoff_set_topology(queue, servers, replicas)
-- Stores which servers hold a queue, and how many of them hold each key. Writes nothing if this is stored already.
-- Servers that the caller no longer names become former servers, since hints may be on them. Servers that are named
-- anew are flagged until their tokens have been compared, since writes had no hints for them.
-- Unless all servers hold all keys before and after a change, the change may give a server keys that it didn't hold
-- before. The function then flags the other named servers for repair, as far as they are registered here. The flag
-- concerns all queues of a server, so the caller must have the right work.
-- Runs with its owner's rights, for roles that may insert into the queue's updates.
-- Tables written: handoff_queue, handoff_replica.
-- Errors: 42501 the caller lacks the right to replicate writes of the queue, or to move its keys; PC001 unknown queue;
-- 22023 no servers, a null among them, or no positive number of replicas.
create or replace function pgcombine_internal.handoff_set_topology(queue text, servers text[], replicas integer)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.handoff_require(queue);
    -- with a null, the comparison below would find no difference
    if not coalesce(replicas > 0 and cardinality(servers) > 0, false)
        or array_position(servers, null) > 0 then
        raise exception 'invalid servers of queue "%": %, with % replicas', queue,
                coalesce(servers::text, 'null'), coalesce(replicas::text, 'null')
            using errcode = '22023', hint = 'name the servers that hold the queue, and how many of them hold a key';
    end if;
    if exists (select from pgcombine.handoff_queue q
               where q.queue = handoff_set_topology.queue
                   and (coalesce(q.placed, q.servers), q.replicas) <> (handoff_set_topology.servers,
                       handoff_set_topology.replicas)
                 and (q.replicas < cardinality(coalesce(q.placed, q.servers))
                     or handoff_set_topology.replicas < cardinality(handoff_set_topology.servers))) then
        perform pgcombine_internal.require(pgcombine_internal.has_right(null,
            'work', pgcombine_internal.caller()), '42501',
            format('permission denied: these servers or replicas would move keys of queue "%s"',
                handoff_set_topology.queue),
            format('name the servers of the queue, %s; they change with a write of a role that works '
                '(pgcombine.grant_right)',
                   (select format('{%s} with %s replicas', array_to_string(coalesce(q.placed, q.servers), ', '),
                       q.replicas) from pgcombine.handoff_queue q where q.queue = handoff_set_topology.queue)));
        perform pgcombine_internal.handoff_require_repair(s,
            format('the servers of queue "%s" have changed, and so has the placement of its keys',
                handoff_set_topology.queue))
        from unnest(servers) s;
    end if;
    perform pgcombine_internal.handoff_require_repair(s,
        format('it may lack writes to queue "%s" from before it was named', handoff_set_topology.queue),
        by_tokens => true)
    from pgcombine.handoff_queue q, unnest(handoff_set_topology.servers) s
    where q.queue = handoff_set_topology.queue and s <> all (q.servers);
    insert into pgcombine.handoff_queue as q (queue, servers, replicas, placed)
    values (handoff_set_topology.queue, handoff_set_topology.servers, handoff_set_topology.replicas,
        handoff_set_topology.servers)
    on conflict on constraint handoff_queue_pkey do update
    set servers = excluded.servers, replicas = excluded.replicas, placed = excluded.placed,
        former = array(select unnest(q.former || q.servers) except select unnest(excluded.servers) order by 1)
    where (q.servers, q.replicas) is distinct from (excluded.servers, excluded.replicas);
end
$$;
