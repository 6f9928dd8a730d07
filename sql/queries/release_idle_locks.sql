-- Releases the idle locks of tables that this session holds (see take_idle_lock): enqueues don't notify any more.
-- Parameter: the tables.
select pg_advisory_unlock(hashtext('pgcombine.idle'), relation::integer),
       pg_advisory_unlock(hashtext('pgcombine.listener'), relation::integer)
from unnest(%s::oid[]) relation
