-- Releases the locks that take_idle_lock has taken for this session. Parameter: the tables.
select pg_advisory_unlock(hashtext('pgcombine.idle'), relation::integer),
       pg_advisory_unlock(hashtext('pgcombine.listener'), relation::integer)
from unnest(%s::oid[]) relation
