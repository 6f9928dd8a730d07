-- pgcombine.quarantine
-- One row a quarantined key of the queues that the reader may operate: the number of its held updates, and why it is
-- quarantined. Held updates are in <queue>_quarantine; id is their pgcombine_key.
-- Held updates aren't pending: backlog doesn't count them, drain and wait don't wait for them, and <queue>_current
-- shows the key as it was last combined.
create or replace view pgcombine.quarantine with (security_barrier) as
select k.queue, k.key, k.updates, k.attempts, k.sqlstate, k.error, k.since, k.id
from pgcombine.quarantined_key k
where pgcombine_internal.has_right(k.queue, 'operate');
