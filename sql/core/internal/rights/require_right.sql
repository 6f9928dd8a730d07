-- pgcombine_internal.require_right(queue, right [, role])
-- Raises unless a role has a right on a queue (see has_right; the right deliver is on an export). A function that runs
-- with its owner's rights calls it first, for pgcombine_internal.caller().
-- Errors: PC001 unknown queue; PC021 unknown export; 42501 the role doesn't have the right.
create or replace function pgcombine_internal.require_right(queue text, "right" text, role name default current_user)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _grant constant text := case require_right."right"
        when 'initialize' then 'load' when 'deliver' then 'export' when 'watch' then 'monitor' when 'use' then 'read'
        else require_right."right" end;
begin
    if require_right."right" = 'deliver' then
        perform pgcombine_internal.require_export(require_right.queue);
    else
        perform pgcombine_internal.require_queue(require_right.queue);
    end if;
    if not pgcombine_internal.has_right(require_right.queue, require_right."right", require_right.role) then
        raise exception 'permission denied: role "%" may not % "%"', require_right.role, case require_right."right"
                when 'enqueue' then 'enqueue to queue'
                when 'initialize' then 'load values into queue'
                when 'load' then 'load into queue'
                when 'read' then 'read queue'
                when 'work' then 'run passes over queue'
                when 'operate' then 'operate queue'
                when 'deliver' then 'deliver export'
                when 'monitor' then 'monitor queue'
                when 'watch' then 'see the failures of queue'
                else 'use queue' end, require_right.queue
            using errcode = '42501', hint = case _grant
                when 'monitor' then format('select pgcombine.grant_monitor(%L)', require_right.role)
                else format('select pgcombine.grant_%s(%L, %L)', _grant, require_right.role, require_right.queue) end;
    end if;
end
$$;
