-- Locks the next hints for a server, in the order of their tokens. Hints that another transaction has locked are left
-- out. While the server is paused, there are none. Returns those locked hints that have the queue and the shape (see
-- handoff_shape) of the first one, up to a number of updates.
--   placed, replicas  the servers that writers name for the queue, and how many of them hold a key
--   coordinator       this server's id if a hint of the same write waits here for another server, too; else null. The
--                     receiver retains the payload of such a write (handoff_store_tokens)
--   details           for a hint that retries a refused update, see handoff_apply; else null
-- Parameters: the server; the token after which the hints begin; the minimum age in seconds, since writers deliver
-- younger hints themselves; the maximum number of writes; the number of updates with which the page ends (the write
-- that reaches this number is returned, too).
with asked (destination, after, age, max_writes, max_updates) as (
    values (%s, %s::uuid, %s * interval '1 second', %s::bigint, %s::bigint)
)
select f.token, f.queue, f.shape, f.digest, to_jsonb(f.servers), f.updates, f.payload, q.placed, q.replicas,
       case when exists (select from pgcombine.handoff_replica r
                         where r.name <> f.destination
                           and exists (select from pgcombine.handoff_hint o where o.destination = r.name
                               and o.token = f.token))
            then (select s.id from pgcombine.handoff_server s) end,
       case when f.number is not null then jsonb_build_object('retried', f.origin, 'number', f.number) end
from (
    select p.*, sum(p.updates) over w - p.updates as before,
           first_value(p.queue) over w as first_queue, first_value(p.shape) over w as first_shape
    from (
        select h.*
        from pgcombine.handoff_hint h
        where h.destination = (select a.destination from asked a) and h.token > (select a.after from asked a)
          and h.since <= now() - (select a.age from asked a)
          and not exists (select from pgcombine.destination d join asked a on a.destination = d.name
                          where d.kind = 'server' and d.state = 'paused')
        order by h.token
        limit (select a.max_writes from asked a)
        for update of h skip locked
    ) p
    window w as (order by p.token)
) f
left join pgcombine.handoff_queue q on q.queue = f.queue
where f.before < (select a.max_updates from asked a) and f.queue = f.first_queue and f.shape = f.first_shape
order by f.token
