"""Fronts: queues whose shards are queues of other databases.

Citus can't take their place. It refuses the two levels of partitions of a queue's log, and computes ``txid_current()``
on its coordinator, so updates would store transaction ids of the wrong server. Triggers on its distributed tables need
a setting that it calls unsafe. YugabyteDB and CockroachDB lack transaction snapshots.
"""
