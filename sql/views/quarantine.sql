-- pgcombine.quarantine: one row a quarantined key of the queues that the reader may operate, with how many of its updates
-- are held in <queue>_quarantine, and why. These updates aren't pending: backlog doesn't count them, drain and wait don't
-- wait for them, and <queue>_current shows the key as it was last combined. id is pgcombine_key there.
-- A security barrier: no function of the reader's sees a row that the reader may not see.
create or replace view pgcombine.quarantine with (security_barrier) as
select k.queue, k.key, k.updates, k.attempts, k.sqlstate, k.error, k.since, k.id
from pgcombine.quarantined_key k
where pgcombine.has_right(k.queue, 'operate');
