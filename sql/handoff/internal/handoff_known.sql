-- pgcombine_internal.handoff_known(queue, tokens) → setof uuid
-- Returns the given tokens whose writes to the queue are on this server. Tokens older than the retention are returned,
-- too, since this server may have deleted its records of them.
-- Runs with its owner's rights, for roles that may read the queue's current values or replicate its writes.
-- Errors: those of handoff_require.
create or replace function pgcombine_internal.handoff_known(queue text, tokens uuid[])
returns setof uuid
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.handoff_require(queue, reads => true);
    return query
    select t from unnest(tokens) t
    where exists (select from pgcombine.handoff_token k where k.token = t and k.queue = handoff_known.queue)
       or pgcombine_internal.handoff_time(t) < now() - (select s.retention from pgcombine.handoff_server s);
end
$$;
