-- pgcombine.handoff_apply(server, queue, shape, tokens, digests, servers, payloads [, home]) → (token, status)
-- Applies writes that come from another server's hints: handoff_take, after it is checked who and what is meant.
--   server    the id of the server that is meant (handoff_hello)
--   shape     of the queue where the writes come from (handoff_shape)
--   home      the server that has the hints. Once a second it is noted, where it is registered, what it must remember
--             as one that has the write itself (handoff_last)
-- Tables written: handoff_token, <queue>_updates, handoff_queue, handoff_delivery.
-- Errors: PC042 another server; PC043 another definition; PC046 it is being rebuilt; those of handoff_take.
create or replace function pgcombine.handoff_apply(server uuid, queue text, shape uuid, tokens uuid[], digests uuid[],
    servers jsonb[], payloads text[], home text default null, out token uuid, out status text)
returns setof record
language plpgsql
as $$
begin
    perform pgcombine.portable_text();
    perform pgcombine.handoff_check(handoff_apply.server, handoff_apply.queue, handoff_apply.shape);
    if not exists (select from pgcombine.handoff_queue q where q.queue = handoff_apply.queue) then
        insert into pgcombine.handoff_queue (queue) values (handoff_apply.queue) on conflict do nothing;
    end if;
    insert into pgcombine.handoff_delivery (destination, token, delivered, deduplicated)
    select handoff_apply.home, max(w.token::text)::uuid, 0, 0
    from unnest(handoff_apply.tokens, handoff_apply.servers) w (token, servers)
    where (w.servers is null or w.servers ? handoff_apply.home)
      and exists (select from pgcombine.handoff_replica r where r.name = handoff_apply.home)
      and not exists (select from pgcombine.handoff_delivery d
                      where d.destination = handoff_apply.home and d.at > clock_timestamp() - interval '1 second')
    having count(*) > 0;
    return query select t.token, t.status
    from pgcombine.handoff_take(handoff_apply.queue, tokens, digests, servers, payloads) t;
end
$$;
