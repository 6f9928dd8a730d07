-- The open transactions that write or have written tokens, except this session's. A caller that waits until these have
-- ended sees the tokens that were written before this query. (Waiting for a lock instead would block new writers.)
select distinct l.virtualtransaction
from pg_locks l
where l.relation = 'pgcombine.handoff_token'::regclass and l.mode = 'RowExclusiveLock' and l.granted
  and l.database = (select d.oid from pg_database d where d.datname = current_database())
  and l.pid is distinct from pg_backend_pid()
