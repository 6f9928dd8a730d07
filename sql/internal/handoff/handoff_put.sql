-- pgcombine_internal.handoff_put(queue, token, shape, digest, servers, destinations, payload) → text[]
-- Writes the hints of a write, one for each destination, unless they exist. Returns the destinations that get none
-- because their quota is reached (handoff_full).
--   servers  the servers that hold updates of the write; null: all
-- Runs with its owner's rights, for roles that may insert into the queue's updates.
-- Tables written: handoff_hint, handoff_replica.
-- Errors: 42501 the caller may not hand on writes of the queue; PC001 unknown queue; those of handoff_size and
-- handoff_full.
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
    _full := pgcombine_internal.handoff_full(destinations);
    insert into pgcombine.handoff_hint as h (destination, token, queue, shape, digest, servers, updates, payload)
    select d, handoff_put.token, handoff_put.queue, handoff_put.shape, handoff_put.digest, handoff_put.servers, _updates, handoff_put.payload
    from unnest(handoff_put.destinations) d
    where not d = any (_full)
    on conflict do nothing;
    return _full;
end
$$;
