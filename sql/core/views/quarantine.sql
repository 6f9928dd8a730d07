-- pgcombine.quarantine
-- Shows rows to roles with the right work. One row for each quarantined key: its quarantined updates, and why it is
-- quarantined.
-- Quarantined updates aren't pending: backlog doesn't count them, drain and wait don't wait for them, and
-- <queue>_current shows the key as it was last combined.
--   queue     name of the queue
--   key       the key, as a JSON object
--   updates   number of quarantined updates
--   attempts  number of passes that failed before the key was quarantined
--   sqlstate  SQLSTATE of the error with which the key failed
--   error     text of this error
--   since     when the key was quarantined
--   id        pgcombine_key of its updates in <queue>_quarantine
create or replace view pgcombine.quarantine with (security_barrier) as
select k.queue, k.key, k.updates, k.attempts, k.sqlstate, k.error, k.since, k.id
from pgcombine.quarantined_key k
where (select pgcombine_internal.has_right(null, 'work'));
