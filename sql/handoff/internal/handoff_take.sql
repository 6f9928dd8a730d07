-- pgcombine_internal.handoff_take(queue, tokens, digests, servers, payloads [, placed, replicas] [, home] [, shape,
--   homes] [, details]) → (token, status)
-- Applies writes in one transaction: appends the updates of those whose token is new. Returns a status for each write:
--   applied    the token was new
--   duplicate  the token is known with the same digest: nothing was done
--   conflict   the token is known with another digest: nothing was done
--   expired    the token is older than the retention, so it is unknown whether it was applied: nothing was done
-- Parameters:
--   tokens            a token that comes twice is applied once, at its first place
--   digests           of the whole writes, even if this server holds only part of their updates
--   servers           the servers that hold updates of each write, as JSON arrays; null: all
--   payloads          see handoff_insert_sql; null: the caller appends the updates itself, or this server holds none
--   placed, replicas  the placement of keys; only the updates of this server's keys are appended (handoff_own)
--   home              see handoff_claim
--   shape, homes      see handoff_keep
--   details           for each write null, or a JSON object. refused: the updates that this server refuses, as objects
--                     of number, sqlstate, error; they are stored instead (handoff_refused). retried and number: the
--                     write is an update of another write that this server refused; it is appended only if the server
--                     still lacks it
-- If a write came in part with a rebuild (handoff_partial), only its other updates are appended. The insert runs with
-- the caller's rights.
-- Tables written: <queue>_updates, those of handoff_claim, handoff_keep, handoff_refuse and handoff_accepts.
-- Errors: those of handoff_claim, handoff_keep, handoff_refuse and of an insert.
create or replace function pgcombine_internal.handoff_take(queue text, tokens uuid[], digests uuid[], servers jsonb[],
    payloads text[],
    placed text[] default null, replicas integer default null, home text default null, shape uuid default null,
    homes uuid[] default null,
    details jsonb[] default null, out token uuid, out status text)
returns setof record
language plpgsql
as $$
declare
    _statuses text[];
    _payloads text[];
    _homes uuid[];
begin
    select array_agg(c.status order by c.number),
           array_agg(case when w.details is not null then pgcombine_internal.handoff_fitting(handoff_take.queue,
               c.token, w.payload,
                                   w.details, handoff_take.placed, handoff_take.replicas, c.slots)
                          when c.slots is null and w.servers is null then w.payload
                          else pgcombine_internal.handoff_own(handoff_take.queue, w.payload, handoff_take.placed,
                              handoff_take.replicas, c.slots) end
                     order by c.token) filter (where c.status = 'applied'),
           array_agg(case when c.status = 'applied' then w.home end order by c.number)
    into _statuses, _payloads, _homes
    from pgcombine_internal.handoff_claim(handoff_take.queue, handoff_take.tokens, handoff_take.digests,
        handoff_take.servers,
                                 handoff_take.home,
                                 handoff_take.homes is not null
                                     and array_position(handoff_take.homes, null) is null) with ordinality c (token,
                                 status, slots, number)
    join unnest(handoff_take.payloads, handoff_take.servers, handoff_take.homes, handoff_take.details)
         with ordinality w (payload, servers, home, details, number) using (number);
    if cardinality(_payloads) > 0 then
        execute pgcombine_internal.handoff_insert_sql(handoff_take.queue) using _payloads;
    end if;
    if array_remove(_homes, null) <> '{}' then
        perform pgcombine_internal.handoff_keep(handoff_take.queue, handoff_take.shape, handoff_take.tokens,
            handoff_take.digests,
            handoff_take.payloads, handoff_take.placed, handoff_take.replicas, _homes);
    end if;
    return query select w.token, w.status from unnest(handoff_take.tokens, _statuses) w (token, status);
end
$$;
