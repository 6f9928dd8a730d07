-- pgcombine.grant_work(role, queue …)
-- Lets a role run passes: combine, workers, the quarantine of failing keys. Passes write the entries of exports;
-- grant_export lets a role deliver them. Observers and combiners run as this role, so grant it the rights that they need.
--   queue  '*': all queues, also later ones
-- Privileges: select pgcombine_internal.right_privileges('work', 'wc') lists them; revoke_right takes them away.
-- Errors: PC001 unknown queue; 42501 the caller isn't the owner.
create or replace function pgcombine.grant_work(role name, variadic queues text[])
returns void
language sql
as $$
    select pgcombine_internal.grant_right('work', grant_work.role, grant_work.queues)
$$;
