-- pgcombine_internal.handoff_retained_of(queue, coordinators, max_writes) → (token, servers)
-- Returns the retained writes to a queue that came from these coordinators, in token order.
--   coordinators  ids of servers
--   max_writes    the largest number of writes returned
--   servers       the servers that hold updates of the write; null: all
-- Runs with its owner's rights, for roles that may read the queue's current values or replicate its writes.
-- Errors: those of handoff_require.
create or replace function pgcombine_internal.handoff_retained_of(queue text, coordinators uuid[], max_writes integer,
    out token uuid, out servers text[])
returns setof record
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.handoff_require(queue, reads => true);
    return query
    select k.token, k.servers from pgcombine.handoff_retained k
    where k.queue = handoff_retained_of.queue and k.coordinator = any (coordinators)
    order by k.token limit max_writes;
end
$$;
