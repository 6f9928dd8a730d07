-- pgcombine_internal.refuse_right(subject, right [, role])
-- Raises the error for a role that lacks a right on a subject. Its hint is the call that grants the right.
--   right  initialize, watch and use are rights that several rights include (see has_right)
-- Errors: 42501.
create or replace function pgcombine_internal.refuse_right(subject text, "right" text, role name default current_user)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    _right constant text := refuse_right."right";
    _kind pgcombine.right_kind;
begin
    select k.* into _kind from pgcombine.right_kind k
    where k."right" = case _right when 'initialize' then 'load' when 'watch' then 'monitor' when 'use' then 'read'
        else _right end;
    raise exception 'permission denied: role "%" may not % "%"', refuse_right.role, case _right
            when 'initialize' then 'load values into queue'
            when 'watch' then 'see the failures of queue'
            when 'use' then 'use queue'
            else _kind.act end, refuse_right.subject
        using errcode = '42501',
            hint = case when _right = 'read'
                    and pgcombine_internal.under_policies(refuse_right.subject, refuse_right.role)
                then format('row security policies on pgcombine.%I apply to the role, so it can only select from '
                    'that table', refuse_right.subject || '_values')
                else format('select pgcombine.grant_right(%L, %L%s)', _kind."right", refuse_right.role,
                    ', ' || quote_literal(case when _kind.subject is not null then refuse_right.subject end))
                end;
end
$$;
