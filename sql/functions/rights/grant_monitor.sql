-- pgcombine.grant_monitor(role)
-- Lets a role see how all queues, exports and servers do, and why passes fail; the text of an error may hold a value.
-- Values, updates and quarantined keys it doesn't see. Sessions of other roles and their snapshots it sees as a member of
-- pg_read_all_stats.
-- Privileges: select pgcombine.right_privileges('monitor') lists them; revoke_right takes them away.
-- Errors: 42501 the caller isn't the owner.
create or replace function pgcombine.grant_monitor(role name)
returns void
language sql
as $$
    select pgcombine.grant_right('monitor', grant_monitor.role, '{}')
$$;
