-- The quarantined keys of a queue, oldest first. The parts of a key are texts, so that numbers keep all their digits.
-- Parameters: the queue; the maximum number of keys.
select k.id, (select jsonb_object_agg(p.key, p.value) from jsonb_each_text(k.key) p) as key, k.updates,
    k.attempts, k.sqlstate,
       k.error, k.since
from pgcombine.quarantine k
where k.queue = %s
order by k.since, k.id
limit %s
