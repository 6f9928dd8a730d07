-- pgcombine_internal.handoff_route(queue, payload, servers, replicas) → (holders, replica_sets)
-- Returns the servers that hold the keys of a write.
--   holders       all of them, sorted by name; null: all servers
--   replica_sets  the sets of servers that hold the write's keys, as JSON. The level of a write (such as quorum) must
--                 be reached in each of them
create or replace function pgcombine_internal.handoff_route(queue text, payload text, servers text[], replicas integer,
    out holders text[], out replica_sets jsonb)
language plpgsql stable
as $$
begin
    if replicas >= cardinality(servers) then
        replica_sets := jsonb_build_array(to_jsonb(servers));
        return;
    end if;
    execute format(
        'with placed as materialized (
             select pgcombine_internal.handoff_placement(slot, $2, $3) as replicas from (select distinct slot from (%s) n) d
         )
         select array(select distinct s from placed, unnest(replicas) s order by 1), jsonb_agg(distinct to_jsonb(replicas)) from placed',
        pgcombine_internal.handoff_slot_sql(handoff_route.queue)) into holders, replica_sets
    using payload, servers, replicas;
end
$$;
