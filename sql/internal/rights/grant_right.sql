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
    _privilege text;
    _subject text;
begin
    perform pgcombine_internal.require_owner();
    for _subject in select null union all select s from pgcombine_internal.right_subjects(grant_right."right", grant_right.subjects) s loop
        for _privilege in
            select p from pgcombine.right_privileges(grant_right."right", _subject) p
            except select g from pgcombine.granted_privileges(grant_right.role) g
        loop
            execute format('grant %s to %I', _privilege, grant_right.role);
        end loop;
        if _subject is not null or cardinality(grant_right.subjects) = 0 then
            insert into pgcombine.granted_right ("right", role, subject)
            values (grant_right."right", grant_right.role, coalesce(_subject, ''))
            on conflict do nothing;
        end if;
    end loop;
    if '*' = any (grant_right.subjects) then
        execute format('grant select (%I) on pgcombine.every_queue to %I', grant_right."right", grant_right.role);
    end if;
end
$$;
