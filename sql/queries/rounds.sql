-- The current round of transaction ids of each queue. Parameter: names of queues.
select queue, txid_snapshot_xmax(txid_current_snapshot()) >> segment_bits
from pgcombine.queue
where queue = any (%s)
