-- Releases the idle locks of tables that this session holds (see take_idle_lock): enqueues don't notify any more.
-- Parameter: the tables.
select pg_advisory_unlock(hashtext('pgcombine.idle'), gate::integer),
       pg_advisory_unlock(hashtext('pgcombine.listener'), gate::integer)
from unnest(%s::oid[]) gate
