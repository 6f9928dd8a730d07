-- pgcombine.handoff_take(queue, tokens, digests, servers, payloads [, home]) → (token, status)
-- Applies writes that have tokens, in one transaction: the updates of those whose token is new. Status of each:
--   applied    its token was new
--   duplicate  its token is there with the same digest: nothing was done
--   conflict   its token is there with another digest: nothing was done
--   expired    its token is older than the retention, so nobody knows whether it was applied: nothing was done
--   digests   of the whole writes, also where a server holds but a part of their updates
--   tokens    one that comes twice is applied once, as it comes first
--   servers   which servers hold updates of the writes, as JSON arrays; null: all
--   payloads  see handoff_insert_sql; null: no updates of it are for this server
--   home      see handoff_claim
-- Of a write that came in part with a rebuild (handoff_partial) the other updates go in. Updates are inserted with the
-- caller's rights.
-- Tables written: <queue>_updates, those of handoff_claim.
-- Errors: those of handoff_claim and of an insert.
create or replace function pgcombine.handoff_take(queue text, tokens uuid[], digests uuid[],
    servers jsonb[], payloads text[], home text default null, out token uuid, out status text)
returns setof record
language plpgsql
as $$
declare
    _statuses text[];
    _payloads text[];
    _insert text;
begin
    select array_agg(c.status order by c.number),
           array_agg(case when c.slots is null then w.payload else pgcombine.handoff_beyond(handoff_take.queue, w.payload, c.slots) end
                     order by c.token) filter (where c.status = 'applied')
    into _statuses, _payloads
    from pgcombine.handoff_claim(handoff_take.queue, handoff_take.tokens, handoff_take.digests, handoff_take.servers,
                                 handoff_take.home) with ordinality c (token, status, slots, number)
    join unnest(handoff_take.payloads) with ordinality w (payload, number) using (number);
    if cardinality(_payloads) > 0 then
        -- a few are cheaper as they are
        _insert := case when (select sum(length(p)) from unnest(_payloads) p) > 1000 then pgcombine.handoff_insert_sql(handoff_take.queue, packed => true) end;
        execute coalesce(_insert, pgcombine.handoff_insert_sql(handoff_take.queue)) using _payloads;
    end if;
    return query select w.token, w.status from unnest(handoff_take.tokens, _statuses) w (token, status);
end
$$;
