-- pgcombine_internal.handoff_put(queue, token, shape, digest, servers, destinations, payload) → text[]
-- Writes the hints of a write, one for each destination, unless they exist. Returns the destinations that get none
-- because their quota is reached (handoff_full).
-- The write must be here: its token, with this digest. A hint could otherwise take another queue's token first.
--   shape    of the queue; it isn't compared again, since replayers set a hint with another one aside
--   servers  the servers that hold updates of the write; null: all
-- Runs with its owner's rights, for roles that may insert into the queue's updates.
-- Tables written: handoff_hint, handoff_replica.
-- Errors: 42501 the caller may not hand on writes of the queue; PC001 unknown queue; 22023 the token isn't here with this
-- digest, or the digest isn't the payload's; those of handoff_size and handoff_full.
create or replace function pgcombine_internal.handoff_put(queue text, token uuid, shape uuid, digest uuid, servers text[],
    destinations text[], payload text)
returns text[]
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _updates integer;
    _full text[];
begin
    perform pgcombine_internal.handoff_require(handoff_put.queue);
    _updates := pgcombine_internal.handoff_size(handoff_put.queue, handoff_put.payload);
    if handoff_put.digest is distinct from pgcombine_internal.handoff_digest(handoff_put.payload)
       or not exists (select from pgcombine.handoff_token k
                      where k.token = handoff_put.token and k.digest = handoff_put.digest
                        and k.queue = handoff_put.queue) then
        raise exception 'token % of queue "%" isn''t on this server with these updates',
                coalesce(handoff_put.token::text, 'null'), handoff_put.queue
            using errcode = '22023', hint = 'hand on writes by pgcombine_internal.handoff_accept, which stores the token first';
    end if;
    _full := pgcombine_internal.handoff_full(destinations);
    insert into pgcombine.handoff_hint as h (destination, token, queue, shape, digest, servers, updates, payload)
    select d, handoff_put.token, handoff_put.queue, handoff_put.shape, handoff_put.digest, handoff_put.servers, _updates, handoff_put.payload
    from unnest(handoff_put.destinations) d
    where not d = any (_full)
    on conflict do nothing;
    return _full;
end
$$;
