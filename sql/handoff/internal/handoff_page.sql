-- pgcombine_internal.handoff_page(destination, after, age, max_writes, max_updates) → hints
-- Locks and returns the next hints for a server, in token order; skips those that another replayer has locked. All
-- hints of a page are of one queue with one definition. Call it in the transaction that retires them.
--   after  only tokens beyond this one; the others were tried in this round
--   age    only hints that are older; the caller that wrote the younger ones is delivering them
--   placed, replicas  the servers that writers name, and how many of them hold a key
--   home   this server's id, if another hint of the write waits: then the server keeps the text (handoff_keep)
--   details  of an update that the server refused before, see handoff_take
create or replace function pgcombine_internal.handoff_page(destination text, after uuid, age interval, max_writes integer, max_updates integer,
    out token uuid, out queue text, out shape uuid, out digest uuid, out servers jsonb, out updates integer, out payload text,
    out placed text[], out replicas integer, out home uuid, out details jsonb)
returns setof record
language sql
as $$
    select f.token, f.queue, f.shape, f.digest, to_jsonb(f.servers), f.updates, f.payload, q.servers, q.replicas,
           case when exists (select from pgcombine.handoff_replica r
                             where r.name <> handoff_page.destination
                               and exists (select from pgcombine.handoff_hint o where o.destination = r.name and o.token = f.token))
                then (select s.id from pgcombine.handoff_server s) end,
           case when f.number is not null then jsonb_build_object('retried', f.origin, 'number', f.number) end
    from (
        select p.*, sum(p.updates) over w - p.updates as before,
               first_value(p.queue) over w as first_queue, first_value(p.shape) over w as first_shape
        from (
            select h.*
            from pgcombine.handoff_hint h
            where h.destination = handoff_page.destination and h.token > handoff_page.after
              and h.since <= now() - handoff_page.age
            order by h.token
            limit max_writes
            for update skip locked
        ) p
        window w as (order by p.token)
    ) f
    left join pgcombine.handoff_queue q on q.queue = f.queue
    where f.before < max_updates and f.queue = f.first_queue and f.shape = f.first_shape
    order by f.token
$$;
