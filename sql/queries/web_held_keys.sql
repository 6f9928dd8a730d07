-- The quarantined keys of a queue, longest held first. Parameters: queue, limit.
select id, key, updates, attempts, sqlstate, error, since
from pgcombine.quarantine
where queue = %s
order by since, id
limit %s
