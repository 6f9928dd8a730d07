-- pgcombine_internal.handoff_placement(slot, servers, replicas) → text[]
-- Returns the servers that hold the keys of a slot, sorted by name.
-- The function uses rendezvous hashing (Thaler and Ravishankar, 1998): the servers with the least md5 of
-- '<slot>/<server>' hold the slot. A new server moves only the slots that it takes, and a removed server only the slots
-- that it had.
create or replace function pgcombine_internal.handoff_placement(slot integer, servers text[], replicas integer)
returns text[]
language sql immutable
as $$
    select array_agg(chosen.server order by chosen.server)
    from (select s as server from unnest(servers) s order by md5(slot || '/' || s), s limit replicas) chosen
$$;
