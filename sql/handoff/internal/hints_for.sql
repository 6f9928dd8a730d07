-- pgcombine_internal.hints_for(server) → hints
-- Returns the hints that wait here for a server, in the order of delivery. content has the updates as JSON objects.
create or replace function pgcombine_internal.hints_for(server text, out token uuid, out queue text,
    out updates integer,
    out bytes integer, out since timestamptz, out content jsonb)
returns setof record
language sql stable
as $$
    select h.token, h.queue, h.updates, pg_column_size(h.payload), h.since,
        pgcombine_internal.handoff_content(h.queue, h.payload)
    from pgcombine.handoff_hint h
    where h.destination = hints_for.server
    order by h.token
$$;
