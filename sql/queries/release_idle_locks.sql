-- Releases the idle locks that this session holds on tables (see take_idle_lock). Enqueues then no longer notify.
-- Parameter: the tables.
select pg_advisory_unlock(hashtext('pgcombine.idle'), relation::integer),
       pg_advisory_unlock(hashtext('pgcombine.listener'), relation::integer)
from unnest(%s::oid[]) relation
