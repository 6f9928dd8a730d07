-- pgcombine_internal.handoff_apply(server, queue, shape, tokens, digests, servers, payloads [, home]) → (token, status)
-- Applies writes from another server's hints: checks the server and the queue (handoff_check), then calls handoff_take.
--   server  the id of this server, as the sender knows it (handoff_hello)
--   shape   the queue's shape at the sender (handoff_shape)
--   home    the server that has the hints, see handoff_claim
-- Tables written: those of handoff_take.
-- Errors: PC042 another server; PC043 another definition; PC046 this server is being rebuilt; those of handoff_take.
create or replace function pgcombine_internal.handoff_apply(server uuid, queue text, shape uuid, tokens uuid[], digests uuid[],
    servers jsonb[], payloads text[], home text default null, out token uuid, out status text)
returns setof record
language plpgsql
as $$
begin
    perform pgcombine_internal.portable_text();
    perform pgcombine_internal.handoff_check(handoff_apply.server, handoff_apply.queue, handoff_apply.shape);
    return query select t.token, t.status
    from pgcombine_internal.handoff_take(handoff_apply.queue, tokens, digests, servers, payloads, home) t;
end
$$;
