-- pgcombine_internal.handoff_payloads(queue, tokens)
--     → (token, shape, digest, servers, updates, payload, placed, replicas, coordinator)
-- Returns the writes whose payload this server has, in hints or retained, so that they can be delivered to a server
-- that lacks them. Hints that retry refused updates are left out.
--   tokens  the tokens of the writes; null: all writes to the queue
create or replace function pgcombine_internal.handoff_payloads(queue text, tokens uuid[], out token uuid,
    out shape uuid, out digest uuid, out servers text[], out updates integer, out payload text, out placed text[],
    out replicas integer, out coordinator uuid)
returns setof record
language sql stable
as $$
    select distinct on (w.token) w.token, w.shape, w.digest, w.servers, w.updates, w.payload, w.placed,
        w.replicas, w.coordinator
    from (
        select k.token, k.shape, k.digest, k.servers, k.updates, k.payload, k.placed, k.replicas, k.coordinator
        from pgcombine.handoff_retained k
        where k.queue = handoff_payloads.queue and (tokens is null or k.token = any (tokens))
        union all
        select h.token, h.shape, h.digest, h.servers, h.updates, h.payload, q.placed, q.replicas, s.id
        from pgcombine.handoff_replica r
        join pgcombine.handoff_hint h on h.destination = r.name -- this makes the search use the primary key
        cross join pgcombine.handoff_server s
        left join pgcombine.handoff_queue q on q.queue = h.queue
        where h.queue = handoff_payloads.queue and h.origin is null and (tokens is null or h.token = any (tokens))
    ) w
    order by w.token
$$;
