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
    _kind pgcombine.right_kind;
begin
    select k.* into _kind from pgcombine.right_kind k
    where k."right" = case _right when 'initialize' then 'load' when 'watch' then 'monitor' when 'use' then 'read'
        else _right end;
    execute format('select pgcombine_internal.require_%s($1)', coalesce(_kind.subject, 'queue'))
        using require_right.subject;
    if not pgcombine_internal.has_right(require_right.subject, _right, require_right.role) then
        raise exception 'permission denied: role "%" may not % "%"', require_right.role, case _right
                when 'initialize' then 'load values into queue'
                when 'watch' then 'see the failures of queue'
                when 'use' then 'use queue'
                else _kind.act end, require_right.subject
            using errcode = '42501',
                hint = case when _right = 'read'
                        and pgcombine_internal.under_policies(require_right.subject, require_right.role)
                    then format('row security policies on pgcombine.%I apply to the role, so it can only select from '
                        'that table', require_right.subject || '_values')
                    else format('select pgcombine.grant_right(%L, %L%s)', _kind."right", require_right.role,
                        ', ' || quote_literal(case when _kind.subject is not null then require_right.subject end))
                    end;
    end if;
end
$$;
