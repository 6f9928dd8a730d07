-- The sources from which a queue of a server is rebuilt, and the slots of keys that each provides (handoff_placement).
-- Each slot of the server comes from the first source that holds it. A row with source null has the slots of the server
-- that no source holds. If each server holds all keys, the first source provides everything, and slots is null.
-- Parameters: the server that is rebuilt; the queue's servers; how many of them hold a key; the sources.
with asked (destination, servers, replicas, sources) as (values (%s, %s::text[], %s::integer, %s::text[]))
select a.sources[1] as source, null::integer[] as slots
from asked a where coalesce(a.replicas >= cardinality(a.servers), true)
union all
select f.source, array_agg(f.slot order by f.slot)
from (
    select s.slot, (select u.source from unnest(a.sources) with ordinality u (source, number)
                    where u.source = any (s.holders) order by u.number limit 1) as source
    from asked a,
         lateral (select g as slot, pgcombine_internal.handoff_placement(g, a.servers, a.replicas) as holders
                  from generate_series(0, 255) g) s
    where a.replicas < cardinality(a.servers) and a.destination = any (s.holders)
) f
group by f.source
