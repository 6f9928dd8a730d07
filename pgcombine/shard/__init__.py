"""Fronts: a queue whose shards are queues of other databases."""
