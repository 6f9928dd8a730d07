-- pgcombine_internal.grant_right(right, role, subjects)
-- Grants a right to a role: the privileges that right_privileges lists for each subject. Each function grant_<right>
-- calls it.
--   subjects  queues, or exports if the right is export. '*': all present and later ones. For the later ones the role
--             gets select on the right's column of pgcombine.every_queue
-- Tables written: pgcombine.granted_right, for revoke_right.
-- Errors: PC001 unknown queue; PC021 unknown export; PC003 no queue; 42501 the caller isn't the owner.
create or replace function pgcombine_internal.grant_right("right" text, role name, subjects text[] default '{}')
returns void
language plpgsql
as $$
declare
    _subjects text[];
    _privilege text;
begin
    perform pgcombine_internal.require_owner();
    _subjects := array(select pgcombine_internal.right_subjects(grant_right."right", grant_right.subjects));
    for _privilege in
        select p from unnest(array_append(_subjects, null)) s, pgcombine_internal.right_privileges(grant_right."right", s) p
        except select g from pgcombine_internal.granted_privileges(grant_right.role) g
    loop
        execute format('grant %s to %I', _privilege, grant_right.role);
    end loop;
    insert into pgcombine.granted_right ("right", role, subject)
    select grant_right."right", grant_right.role, s
    from unnest(case cardinality(grant_right.subjects) when 0 then '{""}' else _subjects end) s
    on conflict do nothing;
    if '*' = any (grant_right.subjects) then
        execute format('grant select (%I) on pgcombine.every_queue to %I', grant_right."right", grant_right.role);
    end if;
end
$$;
