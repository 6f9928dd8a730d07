-- pgcombine.require_deliverer(kind, name)
-- First statement of the functions that report on a destination and run with their owner's rights: whether their
-- caller delivers to it: to a server, who may replay (grant_replay); to an export, who has the right deliver, and who may
-- operate its queue; and who may update pgcombine.destination_state, as the owner may.
-- Errors: 42501 it doesn't.
create or replace function pgcombine.require_deliverer(kind text, name text)
returns void
language plpgsql stable
as $$
declare
    _role constant name := pgcombine.caller();
begin
    if has_table_privilege(_role, 'pgcombine.destination_state', 'update')
       or require_deliverer.kind = 'server' and pgcombine.may_replay()
       or require_deliverer.kind = 'export'
          and (pgcombine.has_right(require_deliverer.name, 'deliver', _role)
               or pgcombine.may_operate_export(require_deliverer.name, _role)) then
        return;
    end if;
    raise exception 'permission denied: role "%" doesn''t deliver to % "%"', _role, require_deliverer.kind, require_deliverer.name
        using errcode = '42501', hint = case require_deliverer.kind when 'server' then format('select pgcombine.grant_replay(%L)', _role)
            else format('select pgcombine.grant_export(%L, %L)', _role, coalesce(require_deliverer.name, '')) end;
end
$$;
