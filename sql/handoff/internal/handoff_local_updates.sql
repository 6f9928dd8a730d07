-- pgcombine_internal.handoff_local_updates(queue, payload, servers, replicas [, came]) → text
-- Returns the updates of a payload whose keys this server holds (handoff_placement). Null: there are none.
--   servers, replicas  the placement; null: this server holds all keys
--   came               slots of keys whose updates this server has already; these updates are left out
-- Errors: PC043 replicas is less than the number of servers, and this server isn't one of them.
create or replace function pgcombine_internal.handoff_local_updates(queue text, payload text, servers text[],
    replicas integer, came integer[] default null)
returns text
language plpgsql stable
as $$
declare
    _numbers integer[];
begin
    if replicas < cardinality(servers) and not (select s.name from pgcombine.handoff_server s) = any (servers) then
        raise exception 'this server holds no keys of queue "%": they are placed on %', queue,
            array_to_string(servers, ', ')
            using errcode = 'PC043', hint = 'let all writers name the same servers';
    end if;
    execute format(
        'with numbered as materialized (
             %s
         ), mine as materialized (
             select slot from (select distinct slot from numbered) d
             where coalesce($3 >= cardinality($2), true)
                or (select s.name from pgcombine.handoff_server s)
                    = any (pgcombine_internal.handoff_placement(slot, $2, $3))
         )
         select array_agg(number order by number) from numbered join mine using (slot)
             where (slot = any ($4)) is not true',
        pgcombine_internal.handoff_slot_sql(queue)) into _numbers using payload, servers, replicas, came;
    return case when cardinality(_numbers) > 0 then pgcombine_internal.handoff_subset(payload, _numbers) end;
end
$$;
