-- pgcombine_internal.handoff_sources(destination, servers, replicas, sources) → (source, slots)
-- Returns the sources from which a server can be rebuilt, and the slots of keys that each provides (handoff_placement).
-- Each slot comes from the first source that holds it. A row with source null has the slots that no source holds. If
-- all servers hold all keys, the first source provides everything, and slots is null.
create or replace function pgcombine_internal.handoff_sources(destination text, servers text[], replicas integer, sources text[],
    out source text, out slots integer[])
returns setof record
language sql immutable
as $$
    select sources[1], null::integer[] where coalesce(replicas >= cardinality(servers), true)
    union all
    select f.source, array_agg(f.slot order by f.slot)
    from (
        select s.slot, (select u.source from unnest(handoff_sources.sources) with ordinality u (source, number)
                        where u.source = any (s.holders) order by u.number limit 1) as source
        from (select g as slot, pgcombine_internal.handoff_placement(g, handoff_sources.servers, replicas) as holders
              from generate_series(0, 255) g) s
        where handoff_sources.destination = any (s.holders)
    ) f
    where replicas < cardinality(servers)
    group by f.source
$$;
