-- pgcombine.revoke_right(right, role [, queue …])
-- Revokes a right from a role: the right's privileges, however they were granted. A right that shares one of them goes,
-- too: enqueue with that of a component, and all rights with work.
--   queues  as for grant_right
-- Errors: PC001 unknown queue; PC003 unknown right, or a name is missing or not allowed; 42501 the caller isn't the
-- owner.
create or replace function pgcombine.revoke_right("right" text, role name, variadic queues text[] default '{}')
returns void
language plpgsql
as $$
declare
    _revoke text;
begin
    perform pgcombine_internal.check_right("right", queues);
    for _revoke in
        select format('revoke %s on %s from %I', p.privileges, p.object, role)
        from unnest(case cardinality(queues) when 0 then '{null}' else queues end) q,
             pgcombine_internal.right_privileges(revoke_right."right", q) p
    loop
        execute _revoke;
    end loop;
end
$$;
