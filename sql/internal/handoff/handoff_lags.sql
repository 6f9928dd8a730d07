-- pgcombine_internal.handoff_lags(queue) → (destination, writes)
-- Returns the number of writes to a queue that wait here for each other server.
-- Runs with its owner's rights, for roles that may read the queue's current values or insert into its updates.
-- Errors: 42501 the caller may do neither; PC001 unknown queue.
create or replace function pgcombine_internal.handoff_lags(queue text, out destination text, out writes bigint)
returns setof record
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.require_queue(handoff_lags.queue);
    if not has_table_privilege(pgcombine_internal.caller(), format('pgcombine.%I', handoff_lags.queue || '_current')::regclass, 'select') then
        perform pgcombine_internal.handoff_require(handoff_lags.queue);
    end if;
    return query
    select h.destination, count(*) from pgcombine.handoff_hint h where h.queue = handoff_lags.queue group by h.destination;
end
$$;
