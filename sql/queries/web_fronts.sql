-- The shards of the fronts, those with a problem first. The view front_stat asks each node.
select queue as front, shard, node, pending as backlog, lag_seconds, updates_per_second_1m, quarantined_keys,
       failing_buckets, problem
from pgcombine.front_stat
order by problem is null, queue, shard
