-- The transactions that are writing tokens now. Once those of an earlier answer have ended, all writes from before it
-- are visible, and later writes see what was committed before it. (Waiting for a lock would hold up new writers.)
select distinct l.virtualtransaction
from pg_locks l
where l.relation = 'pgcombine.handoff_token'::regclass and l.mode = 'RowExclusiveLock' and l.granted
  and l.database = (select d.oid from pg_database d where d.datname = current_database())
  and l.pid is distinct from pg_backend_pid()
