-- pgcombine_internal.handoff_put(queue, token, shape, digest, servers, destinations, updates, payloads) → text[]
-- Writes the hints of a write, one for each destination, unless they exist. Returns the destinations that get none
-- because their quota is reached (handoff_full).
--   servers  the servers that hold updates of the write; null: all
--   updates  the number of updates for each destination
-- Runs with its owner's rights, for roles that may insert into the queue's updates.
-- Tables written: handoff_hint, handoff_replica.
-- Errors: 42501 the caller may not hand on writes of the queue; PC001 unknown queue; 22023 a payload isn't one of the
-- queue's; those of handoff_full.
create or replace function pgcombine_internal.handoff_put(queue text, token uuid, shape uuid, digest uuid, servers text[],
    destinations text[], updates integer[], payloads text[])
returns text[]
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _columns integer;
    _full text[];
begin
    perform pgcombine_internal.handoff_require(handoff_put.queue);
    -- the functions that read hints rely on valid payloads
    select count(*) into _columns from pgcombine.queue_column c where c.queue = handoff_put.queue;
    if exists (select from (select distinct * from unnest(handoff_put.updates, handoff_put.payloads)) w (updates, payload)
               where w.payload is null or w.updates is null or cardinality(w.payload::text[]) <> _columns
                  or exists (select from unnest(w.payload::text[]) c where cardinality(c::text[]) is distinct from w.updates)) then
        raise exception 'a payload doesn''t have the form of the updates of queue "%"', handoff_put.queue
            using errcode = '22023', hint = 'pass the parts that handoff_route returns';
    end if;
    _full := pgcombine_internal.handoff_full(destinations);
    insert into pgcombine.handoff_hint as h (destination, token, queue, shape, digest, servers, updates, payload)
    select w.server, handoff_put.token, handoff_put.queue, handoff_put.shape, handoff_put.digest, handoff_put.servers, w.updates, w.payload
    from unnest(handoff_put.destinations, handoff_put.updates, handoff_put.payloads) w (server, updates, payload)
    where not w.server = any (_full)
    on conflict do nothing;
    return _full;
end
$$;
