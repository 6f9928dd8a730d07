-- pgcombine_internal.oldest_snapshot_for(queue) → bigint
-- Returns oldest_snapshot() to roles that may run passes over the queue. Runs with its owner's rights, since the
-- schema's owner may see other sessions that the caller can't see.
-- Errors: PC001 unknown queue; 42501 the caller lacks the right to run passes over it.
create or replace function pgcombine_internal.oldest_snapshot_for(queue text)
returns bigint
language plpgsql volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform pgcombine_internal.require_right(oldest_snapshot_for.queue, 'work', pgcombine_internal.caller());
    return pgcombine_internal.oldest_snapshot();
end
$$;
