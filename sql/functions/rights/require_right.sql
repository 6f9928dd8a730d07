-- pgcombine.require_right(queue, right [, role])
-- Raises unless a role has a right on a queue (see has_right). A function that runs with its owner's rights calls this
-- before anything else, for pgcombine.caller().
-- Errors: PC001 unknown queue; 42501 the role doesn't have the right.
create or replace function pgcombine.require_right(queue text, "right" text, role name default current_user)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _insert constant boolean := require_right."right" in ('enqueue', 'load', 'initialize');
    _table constant text := require_right.queue || case when require_right."right" in ('enqueue', 'load') then '_updates' else '_values' end;
begin
    perform pgcombine.require_queue(require_right.queue);
    if not pgcombine.has_right(require_right.queue, require_right."right", require_right.role) then
        raise exception 'permission denied: % may not % pgcombine.%', require_right.role,
            case when _insert then 'insert into' else 'select from' end, _table
            using errcode = '42501', hint = format('grant %s on pgcombine.%I to %I',
                case when _insert then 'insert' else 'select' end, _table, require_right.role);
    end if;
end
$$;
