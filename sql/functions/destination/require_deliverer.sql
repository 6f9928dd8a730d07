-- pgcombine.require_deliverer(kind, name)
-- First statement of the functions that report on a destination and run with their owner's rights: whether their
-- caller delivers to it: to a server, who may replay (grant_replay); to an export, who may delete its entries; and
-- who may update pgcombine.destination_state, as the owner may.
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
          and has_table_privilege(_role, to_regclass('pgcombine.' || quote_ident(require_deliverer.name || '_exports')), 'delete') then
        return;
    end if;
    raise exception 'permission denied: role "%" doesn''t deliver to % "%"', _role, require_deliverer.kind, require_deliverer.name
        using errcode = '42501', hint = case require_deliverer.kind when 'server' then format('select pgcombine.grant_replay(%L)', _role)
            else format('grant select, delete on pgcombine.%I to %I', coalesce(require_deliverer.name, '') || '_exports', _role) end;
end
$$;
