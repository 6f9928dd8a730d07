-- pgcombine_internal.base_type(type) → oid
-- Returns the type below a domain, at any depth; for any other type the type itself.
create or replace function pgcombine_internal.base_type(type oid)
returns oid
language plpgsql stable
as $$
declare
    _type oid := type;
    _below oid;
begin
    loop
        select t.typbasetype into strict _below from pg_type t where t.oid = _type;
        exit when _below = 0;
        _type := _below;
    end loop;
    return _type;
end
$$;
