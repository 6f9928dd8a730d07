-- pgcombine.grant_operate(role, queue …)
-- Lets a role pause and resume queues and their exports, see quarantined keys and entries, and retry or drop them. A
-- retry inserts updates, so the role may also enqueue.
--   queue  '*': all queues, also later ones
-- Privileges: select pgcombine_internal.right_privileges('operate', 'wc') lists them; revoke_right takes them away.
-- Errors: PC001 unknown queue; 42501 the caller isn't the owner.
create or replace function pgcombine.grant_operate(role name, variadic queues text[])
returns void
language sql
as $$
    select pgcombine_internal.grant_right('operate', grant_operate.role, grant_operate.queues)
$$;
