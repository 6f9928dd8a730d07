-- pgcombine.grant_right(right, role [, queue …])
-- Grants a right to a role. revoke_right takes it away, and the view rights lists what is granted.
--   right   enqueue, read, and what components add: on the named queues
--           work, monitor: on all queues, also later ones
-- The role gets PostgreSQL's privileges on the tables. rebucket and upgrades keep them.
-- Errors: PC001 unknown queue; PC003 unknown right, or a name is missing or not allowed; 42501 the caller isn't the
-- owner.
create or replace function pgcombine.grant_right("right" text, role name, variadic queues text[] default '{}')
returns void
language plpgsql
as $$
declare
    _grant text;
begin
    perform pgcombine_internal.check_right("right", queues);
    if "right" in ('work', 'monitor') then
        perform pgcombine_internal.keep_rights("right", role);
        return;
    end if;
    for _grant in
        select format('grant %s on %s to %I', p.privileges, p.object, role)
        from unnest(array_append(queues, null)) q, pgcombine_internal.right_privileges(grant_right."right", q) p
    loop
        execute _grant;
    end loop;
end
$$;
