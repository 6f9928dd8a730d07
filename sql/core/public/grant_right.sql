-- pgcombine.grant_right(right, role [, queue …])
-- Grants a right to a role. revoke_right takes it away, and the view rights lists what is granted.
--   right   enqueue, read, load, work, operate, monitor, or a right that a component adds to pgcombine.right_kind
--   queues  names of queues, or of a component's objects if the right is on these. '*' means all, also later ones. A
--           right that is on no object, such as monitor, takes no name
-- The role gets the privileges that right_privileges lists for each queue, and those that depend on no queue. For '*'
-- it also gets select on the right's column of a view (see every_queue).
-- Tables written: pgcombine.granted_right, for revoke_right and the view rights.
-- Errors: PC001 unknown queue (or the component's error for an unknown object); PC003 unknown right, or a
-- name is missing or not allowed; 42501 the caller isn't the owner.
create or replace function pgcombine.grant_right("right" text, role name, variadic queues text[] default '{}')
returns void
language plpgsql
as $$
declare
    _subjects text[];
    _privilege text;
begin
    perform pgcombine_internal.require_owner();
    _subjects := array(select pgcombine_internal.right_subjects(grant_right."right", grant_right.queues));
    for _privilege in
        select p
        from unnest(array_append(_subjects, null)) s, pgcombine_internal.right_privileges(grant_right."right", s) p
        except select g from pgcombine_internal.granted_privileges(grant_right.role) g
    loop
        execute format('grant %s to %I', _privilege, grant_right.role);
    end loop;
    insert into pgcombine.granted_right ("right", role, subject)
    select grant_right."right", grant_right.role, s
    from unnest(case cardinality(grant_right.queues) when 0 then '{""}' else _subjects end) s
    on conflict do nothing;
    if '*' = any (grant_right.queues) then
        execute (select format('grant select (%I) on %s to %I', k."right", k.standing, grant_right.role)
                 from pgcombine.right_kind k where k."right" = grant_right."right");
    end if;
end
$$;
