-- pgcombine_internal.require_owner()
-- Raises unless the current user owns the schema or has its owner's privileges.
-- Errors: 42501 the current user isn't the owner.
create or replace function pgcombine_internal.require_owner()
returns void
language plpgsql stable
as $$
declare
    _owner constant name := (select pg_get_userbyid(n.nspowner) from pg_namespace n where n.nspname = 'pgcombine');
begin
    if not pg_has_role(_owner, 'usage') then
        raise exception 'permission denied: role "%" doesn''t own the schema pgcombine', current_user
            using errcode = '42501', hint = format('its owner "%s" can do this', _owner);
    end if;
end
$$;
