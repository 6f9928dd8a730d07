-- pgcombine_internal.handoff_route(queue, payload, servers, replicas) → (server, part, updates, replica_sets)
-- Splits a payload by server: one row for each server that gets updates.
--   replica_sets  the sets of servers that hold the write's keys, as JSON. The level of a write (such as quorum) must
--                 be reached in each of them
create or replace function pgcombine_internal.handoff_route(queue text, payload text, servers text[], replicas integer,
    out server text, out part text, out updates integer, out replica_sets jsonb)
returns setof record
language plpgsql stable
as $$
begin
    if replicas >= cardinality(servers) then
        return query select s, handoff_route.payload, cardinality((handoff_route.payload::text[])[1]::text[]),
                            jsonb_build_array(to_jsonb(servers))
        from unnest(servers) s;
        return;
    end if;
    return query execute format(
        'with numbered as materialized (
             %s
         ), slots as materialized (
             select slot, pgcombine_internal.handoff_placement(slot, $2, $3) as replicas from (select distinct slot from numbered) d
         ), placed as materialized (
             select number, replicas from numbered join slots using (slot)
         ), sets as (
             select jsonb_agg(distinct to_jsonb(replicas)) as replica_sets from placed
         )
         select s, pgcombine_internal.handoff_part($1, array_agg(number)), count(*)::integer, (select replica_sets from sets)
         from placed, unnest(replicas) s
         group by s', pgcombine_internal.handoff_slot_sql(handoff_route.queue))
    using handoff_route.payload, servers, replicas;
end
$$;
