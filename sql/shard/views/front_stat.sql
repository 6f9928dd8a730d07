-- pgcombine.front_stat
-- One row for each shard of each front: the figures of its queue, as its node tells them to the reader's user mapping.
-- The option connect_timeout of a node's server limits how long the view waits for a connection to the node.
--   queue                  name of the front
--   shard                  number of the shard
--   node                   the foreign server that has the shard
--   pending                number of pending updates (see queue_stat); null with a problem
--   lag_seconds            age of the oldest pending update
--   updates_per_second_1m  updates that passes took in the last minute, as an average per second
--   failing_buckets        number of buckets whose last pass failed
--   quarantined_keys       number of quarantined keys
--   last_pass_at           when the last pass that took updates ended
--   problem                why the node tells nothing of the shard; null: it does
create or replace view pgcombine.front_stat as
select s.queue, s.shard, s.node::text as node, t.pending, t.lag_seconds, t.updates_per_second_1m, t.failing_buckets,
       t.quarantined_keys, t.last_pass_at,
       case when t.problem is not null then t.problem when t.queue is null
           then format('the node shows no queue "%s"', pgcombine_internal.shard_name(s.queue, s.shard)) end as problem
from pgcombine.front_shard s
left join pgcombine_internal.node_stat() t
       on t.node = s.node and coalesce(t.queue, '') in ('', pgcombine_internal.shard_name(s.queue, s.shard));
