-- Records the node to which a shard is being moved. Null: the move has ended, or was cancelled.
-- Parameters: the node; the front; the shard.
update pgcombine.front_shard set target = %s, former = null
where queue = %s and shard = %s
