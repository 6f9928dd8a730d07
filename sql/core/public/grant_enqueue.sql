-- pgcombine.grant_enqueue(role, queue …)
-- Lets a role enqueue: by inserts into <queue>_updates, <queue>_enqueue and Spark's writers in mode staged and token.
-- The role may also call wait.
--   queue  '*': all queues, also later ones
-- Privileges: select pgcombine_internal.right_privileges('enqueue', 'wc') lists them; revoke_right takes them away.
-- Errors: PC001 unknown queue; 42501 the caller isn't the owner.
create or replace function pgcombine.grant_enqueue(role name, variadic queues text[])
returns void
language sql
as $$
    select pgcombine_internal.grant_right('enqueue', grant_enqueue.role, grant_enqueue.queues)
$$;
