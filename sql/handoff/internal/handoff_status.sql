-- pgcombine_internal.handoff_status(queue)
--     → (id, ids, lags, refused, seen, broken, named, coordinators, known, generation)
-- Returns what this server knows about the completeness of the servers that hold a queue:
--   id            id of this server
--   ids           JSON: the ids of other servers, as this server knows them
--   lags          JSON: for each other server the number of writes to the queue that wait here for the server, or that
--                 it refused as a whole
--   refused       JSON: for each server, this one included, the number of writes of which it refused single updates
--   seen          JSON: for each other server the last writes to the queue that this server knows it to have; for each
--                 coordinator's id the last writes retained from it. A server that lacks one of them has lost commits
--   broken        the servers, perhaps including this one, that this server flags for repair
--   named         this server, and the registered servers that writers name as holders of the queue or named before
--   known         this server, and those that writers name, which get hints; null: the queue has no topology
--   coordinators  ids of the servers from which this one retains writes (handoff_retained)
--   generation    generation of the queue here (handoff_generation)
-- The JSON objects lack servers whose id isn't known, or for which there are no such writes.
-- Runs with its owner's rights, for roles that may read the queue's current values or replicate its writes.
-- Errors: those of handoff_require.
create or replace function pgcombine_internal.handoff_status(queue text, out id uuid, out ids jsonb, out lags jsonb,
    out refused jsonb, out seen jsonb, out broken text[], out named text[], out coordinators uuid[], out known text[],
    out generation integer)
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _me pgcombine.handoff_server;
begin
    perform pgcombine_internal.handoff_require(queue, reads => true);
    select s.* into _me from pgcombine.handoff_server s;
    id := _me.id;
    generation := coalesce((select q.generation from pgcombine.handoff_queue q
        where q.queue = handoff_status.queue), 0);
    select coalesce(jsonb_object_agg(r.name, r.id) filter (where r.id is not null), '{}') into ids
        from pgcombine.handoff_replica r;
    select coalesce(jsonb_object_agg(w.destination, w.writes), '{}') into lags
    from (select l.destination, count(*) as writes
          from (select h.destination, h.token from pgcombine.handoff_hint h
                where h.queue = handoff_status.queue and h.number is null
                union
                select q.destination, q.token from pgcombine.handoff_quarantine q
                where q.queue = handoff_status.queue and q.number = 0) l
          group by l.destination) w;
    select coalesce(jsonb_object_agg(w.server, w.writes), '{}') into refused
    from (select p.destination as server, count(*) as writes
          from (select q.destination, q.token from pgcombine.handoff_quarantine q
                where q.queue = handoff_status.queue and q.number > 0
                union
                select h.destination, h.origin from pgcombine.handoff_hint h
                where h.queue = handoff_status.queue and h.number is not null) p
          group by p.destination
          union all
          select _me.name, count(distinct f.token) from pgcombine.handoff_refused f
          where f.queue = handoff_status.queue having count(*) > 0) w
    where w.server is not null;
    select coalesce(jsonb_object_agg(r.name, s.tokens) filter (where s.tokens is not null), '{}') into seen
    from pgcombine.handoff_replica r
    cross join lateral ( -- several tokens, since the server may have committed them in another order
        select array_agg(distinct l.witness) as tokens
        from (select d.witness from pgcombine.handoff_delivery d
              where d.destination = r.name and d.queue = handoff_status.queue and d.witness is not null
              order by d.at desc limit 50) l
    ) s;
    broken := array(select r.name from pgcombine.handoff_replica r where r.needs_repair is not null
                    union all select _me.name where _me.needs_repair is not null);
    named := array(select r.name from pgcombine.handoff_replica r, pgcombine.handoff_queue q
                   where q.queue = handoff_status.queue and r.name = any (q.former || q.servers)
                   union all select _me.name);
    known := (select array(select _me.name union select unnest(q.servers))
              from pgcombine.handoff_queue q where q.queue = handoff_status.queue and q.servers is not null);
    coordinators := array( -- this reads one row of the index for each coordinator
        with recursive found (coordinator) as (
            (select k.coordinator from pgcombine.handoff_retained k where k.queue = handoff_status.queue
                order by k.coordinator limit 1)
            union all
            select (select k.coordinator from pgcombine.handoff_retained k
                    where k.queue = handoff_status.queue and k.coordinator > f.coordinator
                        order by k.coordinator limit 1)
            from found f where f.coordinator is not null
        )
        select f.coordinator from found f where f.coordinator is not null);
    seen := seen || coalesce((
        select jsonb_object_agg(h.coordinator, array(select k.token from pgcombine.handoff_retained k
                                              where k.queue = handoff_status.queue and k.coordinator = h.coordinator
                                              order by k.since desc limit 50))
        from unnest(coordinators) h (coordinator)), '{}');
end
$$;
