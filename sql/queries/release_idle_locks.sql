-- Releases the locks on tables that take_idle_lock has taken for this session. Enqueues then don't notify until a
-- session takes the locks again. Parameter: the tables.
select pg_advisory_unlock(hashtext('pgcombine.idle'), relation::integer),
       pg_advisory_unlock(hashtext('pgcombine.listener'), relation::integer)
from unnest(%s::oid[]) relation
