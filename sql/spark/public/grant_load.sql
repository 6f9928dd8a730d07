-- pgcombine.grant_load(role, queue …)
-- Lets a role load values that are known already (initialize from Spark), and enqueue.
--   queue  '*': all queues, also later ones
-- Privileges: select pgcombine_internal.right_privileges('load', 'wc') lists them; revoke_right takes them away.
-- Errors: PC001 unknown queue; 42501 the caller isn't the owner.
create or replace function pgcombine.grant_load(role name, variadic queues text[])
returns void
language sql
as $$
    select pgcombine_internal.grant_right('load', grant_load.role, grant_load.queues)
$$;
