-- pgcombine_internal.handoff_note(queue, servers, replicas)
-- Stores the servers that hold a queue and the number of them that hold a key; writes nothing if that is stored
-- already.
-- Runs with its owner's rights, for roles that may insert into the queue's updates.
-- Tables written: handoff_queue.
-- Errors: 42501 the caller may not hand on writes of the queue; PC001 unknown queue.
create or replace function pgcombine_internal.handoff_note(queue text, servers text[], replicas integer)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.handoff_require(handoff_note.queue);
    insert into pgcombine.handoff_queue as q (queue, servers, replicas)
    values (handoff_note.queue, handoff_note.servers, handoff_note.replicas)
    on conflict on constraint handoff_queue_pkey do update set servers = excluded.servers, replicas = excluded.replicas
    where (q.servers, q.replicas) is distinct from (excluded.servers, excluded.replicas);
end
$$;
