-- pgcombine_internal.require_right(subject, right [, role])
-- Raises unless a role has a right on a subject: a queue, or an object of a component (see has_right). A function that
-- runs with its owner's rights passes the role that pgcombine_internal.caller() returns.
-- Errors: PC001 unknown queue, or the component's error for an unknown object; 42501 the role doesn't have the right.
create or replace function pgcombine_internal.require_right(subject text, "right" text, role name default current_user)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _right constant text := require_right."right";
begin
    execute format('select pgcombine_internal.require_%s($1)', coalesce((
        select k.subject from pgcombine.right_kind k
        where k."right" = case when _right in ('initialize', 'watch', 'use') then 'read' else _right end), 'queue'))
        using require_right.subject;
    if not pgcombine_internal.has_right(require_right.subject, _right, require_right.role) then
        perform pgcombine_internal.refuse_right(require_right.subject, _right, require_right.role);
    end if;
end
$$;
