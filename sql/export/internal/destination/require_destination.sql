-- pgcombine_internal.require_destination(kind, name) → pgcombine.destination_state
-- Returns the state of a destination.
-- Errors: PC020 there is no such destination.
create or replace function pgcombine_internal.require_destination(kind text, name text)
returns pgcombine.destination_state
language plpgsql stable
as $$
declare
    _state pgcombine.destination_state;
begin
    select d.* into _state from pgcombine.destination_state d
    where d.kind = require_destination.kind and d.name = require_destination.name;
    if not found then
        raise exception 'there is no destination "%" of kind %', require_destination.name, require_destination.kind
            using errcode = 'PC020', hint = 'select name, kind from pgcombine.destination lists them';
    end if;
    return _state;
end
$$;
