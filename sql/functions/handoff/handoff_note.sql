-- pgcombine.handoff_note(queue, servers, replicas)
-- Notes that all these servers hold the queue, a key on so many of them; nothing is written if that is known.
-- Runs with its owner's rights, for who may insert into the queue's updates.
-- Tables written: handoff_queue.
-- Errors: 42501 the caller may not.
create or replace function pgcombine.handoff_note(queue text, servers text[], replicas integer)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine.handoff_require(handoff_note.queue);
    insert into pgcombine.handoff_queue as q (queue, servers, replicas)
    values (handoff_note.queue, handoff_note.servers, handoff_note.replicas)
    on conflict on constraint handoff_queue_pkey do update set servers = excluded.servers, replicas = excluded.replicas
    where (q.servers, q.replicas) is distinct from (excluded.servers, excluded.replicas);
end
$$;
