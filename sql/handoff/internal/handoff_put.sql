-- pgcombine_internal.handoff_put(queue, token, shape, digest, servers, destinations, payload) → text[]
-- Writes the hints of a write, one for each destination, unless they exist. If a destination's quota is reached and its
-- when_full is backpressure, the function raises an error. If its when_full is require_repair, the function writes no
-- hint for the destination, flags the destination for repair and returns its name.
-- The quota is approximate: the waiting hints are measured about once a second.
-- This server must have the write's token with this digest, so that a caller can't write a hint with the token of
-- another queue's write.
--   shape    of the queue; it isn't checked here, since the destination refuses a hint with another shape
--   servers  the servers that hold updates of the write; null: all
-- Runs with its owner's rights, for roles that may insert into the queue's updates.
-- Tables written: handoff_hint, handoff_replica.
-- Errors: 42501 the caller lacks the right to replicate writes of the queue; PC001 unknown queue; 22023 the token isn't
-- here with this digest, or the digest isn't the payload's; PC044 the quota of a server with backpressure is reached;
-- PC045 a server isn't registered; those of handoff_size.
create or replace function pgcombine_internal.handoff_put(queue text, token uuid, shape uuid, digest uuid,
    servers text[], destinations text[], payload text)
returns text[]
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _updates integer;
    _full text[] := '{}';
    _destination text;
    _replica pgcombine.handoff_replica;
begin
    perform pgcombine_internal.handoff_require(queue);
    _updates := pgcombine_internal.handoff_size(queue, payload);
    if handoff_put.digest is distinct from pgcombine_internal.handoff_digest(payload)
       or not exists (select from pgcombine.handoff_token k
                      where k.token = handoff_put.token and k.digest = handoff_put.digest
                        and k.queue = handoff_put.queue) then
        raise exception 'token % of queue "%" isn''t on this server with these updates',
                coalesce(token::text, 'null'), queue
            using errcode = '22023',
                hint = 'replicate writes by pgcombine_internal.handoff_accept, which stores the token first';
    end if;

    foreach _destination in array destinations loop
        -- while handoff_unregister removes the server, this waits
        select r.* into _replica from pgcombine.handoff_replica r where r.name = _destination for key share;
        perform pgcombine_internal.require(found, 'PC045',
            format('server "%s" is not registered here', _destination),
            format('pgcombine replicas add %s DSN', _destination));
        if _replica.measured_at < clock_timestamp() - interval '1 second' then
            update pgcombine.handoff_replica r
            set (rows, bytes) = (select coalesce(sum(h.updates), 0), coalesce(sum(pg_column_size(h.payload)), 0)
                                 from pgcombine.handoff_hint h where h.destination = _destination),
                measured_at = clock_timestamp()
            from (select l.name from pgcombine.handoff_replica l
                where l.name = _destination for no key update skip locked) free
            where r.name = free.name;
            select r.* into _replica from pgcombine.handoff_replica r where r.name = _destination;
        end if;
        continue when _replica.rows < _replica.max_rows and _replica.bytes < _replica.max_bytes;
        perform pgcombine_internal.require(_replica.when_full <> 'backpressure', 'PC044',
            format('hints for server "%s" are at their quota: about %s updates (of %s), %s bytes (of %s)',
                _destination, _replica.rows, _replica.max_rows, _replica.bytes, _replica.max_bytes),
            'nothing was written; bring the server back, or raise its quota: pgcombine replicas add');
        _full := _full || _destination;
        perform pgcombine_internal.handoff_require_repair(_destination, 'the quota of its hints was reached',
            by_tokens => true);
    end loop;

    insert into pgcombine.handoff_hint as h (destination, token, queue, shape, digest, servers, updates, payload)
    select d, handoff_put.token, handoff_put.queue, handoff_put.shape, handoff_put.digest, handoff_put.servers,
        _updates, handoff_put.payload
    from unnest(destinations) d
    where not d = any (_full)
    on conflict do nothing;
    return _full;
end
$$;
