"""Fronts: queues whose shards are queues of other databases."""
