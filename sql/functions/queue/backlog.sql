-- pgcombine.backlog(queue) → bigint
-- How many updates are pending, exactly.
-- Runs with its owner's rights, for who may use the queue in any way.
-- Errors: PC001 unknown queue; 42501 the caller may not use it.
create or replace function pgcombine.backlog(queue text)
returns bigint
language plpgsql stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    _backlog bigint;
begin
    perform pgcombine.require_right(backlog.queue, 'use', pgcombine.caller());
    execute format('select count(*) from pgcombine.%I', backlog.queue || '_pending') into _backlog;
    return _backlog;
end
$$;
