-- pgcombine_internal.handoff_full(destinations) → text[]
-- Returns the servers whose quota of hints is reached, and marks them for repair. If such a server exerts backpressure,
-- it raises instead. The quota is approximate: pending hints are measured at most once a second, by one of the callers.
-- Tables written: handoff_replica.
-- Errors: PC044 the quota of a server with backpressure is reached; PC045 a server isn't registered.
create or replace function pgcombine_internal.handoff_full(destinations text[])
returns text[]
language plpgsql
as $$
declare
    _destination text;
    _replica pgcombine.handoff_replica;
    _full text[] := '{}';
begin
    foreach _destination in array destinations loop
        -- the lock waits for the end of a removal (handoff_unregister)
        select r.* into _replica from pgcombine.handoff_replica r where r.name = _destination for key share;
        if not found then
            raise exception 'server "%" is not registered here', _destination
                using errcode = 'PC045', hint = format('pgcombine replicas add %s DSN', _destination);
        end if;
        if _replica.measured_at < clock_timestamp() - interval '1 second' then
            update pgcombine.handoff_replica r
            set (rows, bytes) = (select coalesce(sum(h.updates), 0), coalesce(sum(pg_column_size(h.payload)), 0)
                                 from pgcombine.handoff_hint h where h.destination = _destination),
                measured_at = clock_timestamp()
            from (select l.name from pgcombine.handoff_replica l where l.name = _destination for no key update skip locked) free
            where r.name = free.name;
            select r.* into _replica from pgcombine.handoff_replica r where r.name = _destination;
        end if;
        continue when _replica.rows < _replica.max_rows and _replica.bytes < _replica.max_bytes;
        if _replica.when_full = 'backpressure' then
            raise exception 'hints for server "%" are at their quota: about % updates (of %), % bytes (of %)', _destination,
                _replica.rows, _replica.max_rows, _replica.bytes, _replica.max_bytes
                using errcode = 'PC044', hint = 'nothing was written; bring the server back, or raise its quota: pgcombine replicas add';
        end if;
        _full := _full || _destination;
        perform pgcombine_internal.handoff_mark(_destination, 'the quota of its hints was reached', by_tokens => true);
    end loop;
    return _full;
end
$$;
