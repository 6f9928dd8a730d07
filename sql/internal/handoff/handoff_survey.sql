-- pgcombine_internal.handoff_survey(queue) → (id, ids, lags, broken, named, homes, known)
-- Returns what this server knows about the completeness of the servers that hold a queue:
--   id      of this server
--   ids     JSON: the ids of other servers, as this one knows them
--   lags    JSON: for each other server the number of writes to the queue that wait here for it
--   broken  the servers, this one perhaps among them, that lack writes for which no hint waits
--   named   the registered servers that writers name as holders of the queue, or named before; and this one
--   known   the servers that are registered or that writers name: others may lack writes. Null: there are none yet
--   homes   ids of the servers from whose hints this one has writes that others may lack (handoff_kept)
-- Runs with its owner's rights, for roles that may read the queue's current values or hand on its writes.
-- Errors: those of handoff_require_reader.
create or replace function pgcombine_internal.handoff_survey(queue text, out id uuid, out ids jsonb, out lags jsonb, out broken text[], out named text[], out homes uuid[], out known text[])
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _me pgcombine.handoff_server;
begin
    perform pgcombine_internal.handoff_require_reader(handoff_survey.queue);
    select s.* into _me from pgcombine.handoff_server s;
    id := _me.id;
    select coalesce(jsonb_object_agg(r.name, r.id) filter (where r.id is not null), '{}') into ids from pgcombine.handoff_replica r;
    select coalesce(jsonb_object_agg(w.destination, w.writes), '{}') into lags
    from (select h.destination, count(*) as writes from pgcombine.handoff_hint h
          where h.queue = handoff_survey.queue group by h.destination) w;
    broken := array(select r.name from pgcombine.handoff_replica r where r.needs_repair is not null
                    union all select _me.name where _me.needs_repair is not null);
    named := array(select r.name from pgcombine.handoff_replica r, pgcombine.handoff_queue q
                   where q.queue = handoff_survey.queue and r.name = any (q.former || q.servers)
                   union all select _me.name);
    known := (select array(select _me.name union select unnest(q.servers) union select r.name from pgcombine.handoff_replica r)
              from pgcombine.handoff_queue q where q.queue = handoff_survey.queue and q.servers is not null);
    homes := array( -- one step of the index for each home, however many writes are kept
        with recursive found (home) as (
            (select k.home from pgcombine.handoff_kept k where k.queue = handoff_survey.queue order by k.home limit 1)
            union all
            select (select k.home from pgcombine.handoff_kept k
                    where k.queue = handoff_survey.queue and k.home > f.home order by k.home limit 1)
            from found f where f.home is not null
        )
        select f.home from found f where f.home is not null);
end
$$;
