-- pgcombine.front_stat
-- One row for each shard of each front: what its node shows of the shard's queue to the reader's remote user.
-- The columns from pending to last_pass_at mean the same as in queue_stat. They are null if there is a problem. The
-- option connect_timeout of a node's server limits how long the view waits for a connection to the node.
--   queue                  name of the front
--   shard                  number of the shard
--   node                   the foreign server that has the shard
--   pending                about how many updates no pass has combined yet
--   lag_seconds            age of the oldest pending update; 0 if none is pending or the queue is paused
--   updates_per_second_1m  updates that passes took in the last minute, as an average per second
--   failing_buckets        number of buckets where a pass has failed and none has taken all updates since
--   quarantined_keys       number of quarantined keys
--   last_pass_at           when the last pass in the journal that took updates ended; null if there is none
--   problem                why the node tells nothing of the shard; null: there is no problem
create or replace view pgcombine.front_stat as
select s.queue, s.shard, s.node::text as node, t.pending, t.lag_seconds, t.updates_per_second_1m, t.failing_buckets,
       t.quarantined_keys, t.last_pass_at,
       case when t.problem is not null then t.problem when t.queue is null
           then format('the node shows no queue "%s"', pgcombine_internal.shard_name(s.queue, s.shard)) end as problem
from pgcombine.front_shard s
left join pgcombine_internal.node_stat() t
       on t.node = s.node and coalesce(t.queue, '') in ('', pgcombine_internal.shard_name(s.queue, s.shard));
