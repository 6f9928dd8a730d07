-- pgcombine_internal.handoff_apply(server, queue, shape, tokens, digests, servers, payloads [, home] [, placed,
--   replicas] [, homes] [, details]) → (token, status)
-- Applies writes from another server's hints: checks the server and the queue (handoff_check), then calls handoff_take.
--   server            the id of this server, as the sender knows it (handoff_hello)
--   shape             the queue's shape at the sender (handoff_shape)
--   placed, replicas  the servers that the writer named, and how many of them hold a key; null: unknown
--   home              the server that has the hints, see handoff_claim
--   homes, details    see handoff_take
-- Tables written: those of handoff_take and handoff_note.
-- Errors: PC042 another server; PC043 another definition; PC046 this server is being rebuilt; those of handoff_take.
create or replace function pgcombine_internal.handoff_apply(server uuid, queue text, shape uuid, tokens uuid[],
    digests uuid[],
    servers jsonb[], payloads text[], home text default null, placed text[] default null, replicas integer default null,
    homes uuid[] default null, details jsonb[] default null,
    out token uuid, out status text)
returns setof record
language plpgsql
as $$
begin
    perform pgcombine_internal.portable_text();
    perform pgcombine_internal.handoff_check(handoff_apply.server, handoff_apply.queue, handoff_apply.shape);
    if placed is not null and handoff_apply.replicas is not null
        and not exists (select from pgcombine.handoff_queue q where q.queue = handoff_apply.queue
        and q.servers is not null) then
        perform pgcombine_internal.handoff_note(handoff_apply.queue, placed, handoff_apply.replicas);
    end if;
    return query select t.token, t.status
    from pgcombine_internal.handoff_take(handoff_apply.queue, tokens, digests, servers, payloads, placed,
        handoff_apply.replicas, home,
        handoff_apply.shape, homes, details) t;
end
$$;
