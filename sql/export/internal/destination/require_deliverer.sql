-- pgcombine_internal.require_deliverer(kind, name)
-- Raises an error unless the caller may deliver to a destination.
-- Roles with the right replay may deliver to servers. Roles with the right export on an export, and roles that may
-- operate its queue, may deliver to the export. Roles with update on the whole table pgcombine.destination_state may
-- deliver to all destinations.
-- Errors: 42501 the caller lacks the right to deliver.
create or replace function pgcombine_internal.require_deliverer(kind text, name text)
returns void
language plpgsql stable
as $$
declare
    _role constant name := pgcombine_internal.caller();
begin
    if has_table_privilege(_role, 'pgcombine.destination_state', 'update')
       or require_deliverer.kind = 'server' and pgcombine_internal.has_right('', 'replay', _role)
       or require_deliverer.kind = 'export'
          and (pgcombine_internal.has_right(require_deliverer.name, 'export', _role)
               or pgcombine_internal.may_operate_export(require_deliverer.name, _role)) then
        return;
    end if;
    raise exception 'permission denied: role "%" may not deliver to % "%"', _role, require_deliverer.kind,
        require_deliverer.name
        using errcode = '42501', hint = case require_deliverer.kind
            when 'server' then format('select pgcombine.grant_right(''replay'', %L)', _role)
            else format('select pgcombine.grant_right(''export'', %L, %L)', _role,
                coalesce(require_deliverer.name, '')) end;
end
$$;
