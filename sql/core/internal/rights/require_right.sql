-- pgcombine_internal.require_right(queue, right [, role])
-- Raises unless a role has a right (see has_right). A function that runs with its owner's rights passes the role that
-- pgcombine_internal.caller() returns.
--   queue  null, for the rights work and monitor: no queue needs to exist
-- Errors: PC001 unknown queue; 42501 the role doesn't have the right.
create or replace function pgcombine_internal.require_right(queue text, "right" text, role name default current_user)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _right constant text := case "right" when 'use' then 'read' else "right" end;
    _all constant boolean := _right in ('work', 'monitor');
begin
    if queue is not null or not _all then
        perform pgcombine_internal.require_queue(queue);
    end if;
    if pgcombine_internal.has_right(queue, "right", role) then
        return;
    end if;
    raise exception 'permission denied: role "%" lacks the right % on %', role, _right,
        case when _all then 'the queues' else format('queue "%s"', queue) end
        using errcode = '42501',
            hint = case when _right = 'read' and pgcombine_internal.under_policies(
                    to_regclass(format('pgcombine.%I', queue || '_values')), role)
                then format('row security policies on pgcombine.%I apply to the role, so it can only select from '
                    'that table', queue || '_values')
                else format('select pgcombine.grant_right(%L, %L%s)', _right, role,
                    case when not _all then ', ' || quote_literal(queue) end) end;
end
$$;
