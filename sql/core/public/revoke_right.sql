-- pgcombine.revoke_right(right, role [, queue …])
-- Revokes a right on queues, on a component's objects, or on no object (monitor) from a role.
--   queues  as for grant_right
-- The function revokes the right's privileges, except those that belong to another right which grant_right has granted
-- to the role. Privileges that were granted manually look the same, so they are revoked with the right.
-- Tables written: pgcombine.granted_right.
-- Errors: PC001 unknown queue (or the component's error for an unknown object); PC003 unknown right, or a
-- name is missing or not allowed; 42501 the caller isn't the owner.
create or replace function pgcombine.revoke_right("right" text, role name, variadic queues text[] default '{}')
returns void
language plpgsql
as $$
declare
    _right constant text := revoke_right."right";
    _role constant name := revoke_right.role;
    _before text[];
    _kept text[]; -- privileges that belong to the role's other rights
    _subjects text[];
    _privilege text;
begin
    perform pgcombine_internal.require_owner();
    _subjects := array(select s from pgcombine_internal.right_subjects(_right, revoke_right.queues) s);
    _before := array(select g from pgcombine_internal.granted_privileges(_role) g);
    if '*' = any (revoke_right.queues) then
        execute (select format('revoke select (%I) on %s from %I', _right, k.standing, _role)
                 from pgcombine.right_kind k where k."right" = _right);
    end if;
    delete from pgcombine.granted_right g
    where g."right" = _right and g.role = _role
      and ('*' = any (revoke_right.queues) or g.subject = any (_subjects) or _subjects = '{}' and g.subject = '');
    if not exists (select from pgcombine.granted_right g where g."right" = _right and g.role = _role) then
        -- the right is gone altogether, so revoke the privileges that depend on no queue, too
        _subjects := _subjects || null::text;
    end if;
    _kept := array(
        select distinct p
        from unnest(_subjects) s
        join pgcombine.granted_right g on g.role = _role
        join pgcombine.right_kind k on k."right" = g."right"
        cross join lateral pgcombine_internal.right_privileges(g."right", s) p
        where s is null or g.subject = s and k.subject = (
            select o.subject from pgcombine.right_kind o where o."right" = _right));
    for _privilege in
        select p from unnest(_subjects) s, pgcombine_internal.right_privileges(_right, s) p
        except select unnest(_kept)
    loop
        execute format('revoke %s from %I', _privilege, _role);
    end loop;
    -- revoking a privilege on a table also revokes it on the columns, so grant the kept privileges on columns again
    for _privilege in
        select k from unnest(_kept) k where k = any (_before)
        except select g from pgcombine_internal.granted_privileges(_role) g
    loop
        execute format('grant %s to %I', _privilege, _role);
    end loop;
end
$$;
