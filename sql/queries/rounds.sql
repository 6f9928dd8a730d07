-- The number of each queue's current round: the transaction ids for which its log now uses one segment (see
-- consumed_segments). Parameter: names of queues.
select queue, txid_snapshot_xmax(txid_current_snapshot()) >> segment_bits
from pgcombine.queue
where queue = any (%s)
