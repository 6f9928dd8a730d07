-- pgcombine_internal.handoff_apply(server, queue, shape, tokens, digests, servers, payloads [, coordinator] [, placed,
--   replicas] [, coordinators] [, details]) → (token, status)
-- Applies writes in one transaction: appends the updates of those whose token is new. Returns a status for each write:
--   applied    the token was new
--   duplicate  the token is known with the same digest: nothing was done
--   conflict   the token is known with another digest or for another queue: nothing was done
--   expired    the token is unknown and older than the retention, so the write may have been applied: nothing was done
-- Parameters:
--   server            the id of this server, as the sender knows it (handoff_handshake). Null: the caller has called
--                     handoff_check
--   shape             the queue's shape at the sender (handoff_shape)
--   tokens            a token that comes twice is applied once, at its first place
--   digests           digests of the whole writes, even if this server holds only part of their updates
--   servers           the servers that hold updates of each write, as JSON arrays; null: all
--   payloads          see handoff_insert_sql; null: no updates are appended here
--   coordinator, coordinators  see handoff_store_tokens
--   placed, replicas  the servers that the writer named, and how many of them hold a key; null: unknown. If the queue
--                     has no topology here, or lacks one of these servers that is registered here and holds all keys,
--                     the function stores them (handoff_set_topology). If the parameter servers
--                     is given, only the updates of this server's keys are appended (handoff_local_updates)
--   details           for each write null, or a JSON object. "refused" lists updates that this server refuses, as
--                     objects of number, sqlstate and error, for handoff_refused. "retried" and "number" mean that the
--                     write retries an update that this server refused: the token of the refused write, and the place
--                     of the update there. Such an update is appended only if this server still lacks it
-- If a write came in part with a rebuild (handoff_partial), only its other updates are appended. The insert runs with
-- the caller's rights.
-- Tables written: <queue>_updates, those of handoff_store_tokens, handoff_set_topology, handoff_refuse and
-- handoff_accepts.
-- Errors: those of handoff_check, handoff_store_tokens, handoff_set_topology, handoff_fitting, handoff_local_updates
-- and of an insert.
create or replace function pgcombine_internal.handoff_apply(server uuid, queue text, shape uuid, tokens uuid[],
    digests uuid[], servers jsonb[], payloads text[], coordinator text default null, placed text[] default null,
    replicas integer default null, coordinators uuid[] default null, details jsonb[] default null, out token uuid,
    out status text)
returns setof record
language plpgsql
as $$
declare
    _known pgcombine.handoff_queue;
    _all text[];
    _statuses text[];
    _payloads text[];
begin
    perform pgcombine_internal.portable_text();
    if server is not null then
        perform pgcombine_internal.handoff_check(server, queue, shape);
    end if;
    if placed is not null and replicas is not null then
        select q.* into _known from pgcombine.handoff_queue q where q.queue = handoff_apply.queue;
        if _known.servers is null then
            perform pgcombine_internal.handoff_set_topology(queue, placed, replicas);
        elsif not placed <@ _known.servers and _known.replicas >= cardinality(_known.servers) then
            -- writers here must leave hints for the servers that writers elsewhere name, too
            _all := pgcombine_internal.handoff_union(_known, placed, replicas, array(
                select s from unnest(placed) s
                where s <> all (_known.servers)
                  and not exists (select from pgcombine.handoff_replica r where r.name = s)));
            if not _all <@ _known.servers then
                perform pgcombine_internal.handoff_set_topology(queue, _all, cardinality(_all));
            end if;
        end if;
    end if;
    select array_agg(c.status order by c.number),
           array_agg(case when w.details is not null then pgcombine_internal.handoff_fitting(handoff_apply.queue,
                              c.token, w.payload, w.details, placed, replicas, c.slots)
                          when c.slots is null and w.servers is null then w.payload
                          else pgcombine_internal.handoff_local_updates(handoff_apply.queue, w.payload, placed,
                              replicas, c.slots) end
                     order by c.token) filter (where c.status = 'applied')
    into _statuses, _payloads
    from pgcombine_internal.handoff_store_tokens(handoff_apply.queue, tokens, digests, handoff_apply.servers,
             coordinator, coordinators, payloads, shape, placed, replicas)
         with ordinality c (token, status, slots, number)
    join unnest(payloads, handoff_apply.servers, handoff_apply.details)
         with ordinality w (payload, servers, details, number) using (number);
    if cardinality(_payloads) > 0 then
        execute pgcombine_internal.handoff_insert_sql(queue) using _payloads;
    end if;
    return query select w.token, w.status from unnest(tokens, _statuses) w (token, status);
end
$$;
