-- The round of ids that is under way for each of some queues. Parameter: their names.
select queue, txid_snapshot_xmax(txid_current_snapshot()) >> segment_bits
from pgcombine.queue
where queue = any (%s)
