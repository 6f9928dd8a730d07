-- pgcombine.backlog(queue) → bigint
-- Returns the exact number of pending updates.
-- Runs with its owner's rights, for roles with any right on the queue.
-- Errors: PC001 unknown queue; 42501 the caller has no right on the queue.
create or replace function pgcombine.backlog(queue text)
returns bigint
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _backlog bigint;
begin
    perform pgcombine_internal.require_right(queue, 'use', pgcombine_internal.caller());
    execute format('select count(*) from pgcombine.%I', queue || '_pending') into _backlog;
    return _backlog;
end
$$;
