-- The number of each queue's current round (see consumed_segments). Parameter: the names of the queues.
select queue, txid_snapshot_xmax(txid_current_snapshot()) >> segment_bits
from pgcombine.queue
where queue = any (%s)
