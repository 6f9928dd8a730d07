-- The queues, and the shards of fronts, which are queues of nodes. A shard that is also a queue of this database is
-- returned only once.
select queue, pending, lag_seconds, quarantined_keys, paused::integer as paused from pgcombine.queue_stat
union all
select pgcombine_internal.shard_name(queue, shard), pending, lag_seconds, quarantined_keys, null
from pgcombine.front_stat
where pgcombine_internal.shard_name(queue, shard) not in (select queue from pgcombine.queue)
