-- pgcombine.grant_monitor(role)
-- Lets a role see the status of all queues, exports and servers, and why passes fail; the text of an error may contain
-- a value. The role doesn't see values, updates and quarantined keys. To see other roles' sessions and snapshots it
-- must be a member of pg_read_all_stats.
-- Privileges: select pgcombine_internal.right_privileges('monitor') lists them; revoke_right takes them away.
-- Errors: 42501 the caller isn't the owner.
create or replace function pgcombine.grant_monitor(role name)
returns void
language sql
as $$
    select pgcombine_internal.grant_right('monitor', grant_monitor.role, '{}')
$$;
