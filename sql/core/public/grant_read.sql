-- pgcombine.grant_read(role, queue …)
-- Lets a role read values: <queue>_values, <queue>_current, backlog, wait, Spark's reader. The role sees pending
-- updates only as <queue>_current combines them.
--   queue  '*': all queues, also later ones
-- Privileges: select pgcombine_internal.right_privileges('read', 'wc') lists them; revoke_right takes them away.
-- Errors: PC001 unknown queue; 42501 the caller isn't the owner.
create or replace function pgcombine.grant_read(role name, variadic queues text[])
returns void
language sql
as $$
    select pgcombine_internal.grant_right('read', grant_read.role, grant_read.queues)
$$;
