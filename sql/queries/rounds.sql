-- The number of each queue's current round. A round is the range of transaction ids whose updates go to one segment of
-- the log (see consumed_segments). Parameter: names of queues.
select queue, txid_snapshot_xmax(txid_current_snapshot()) >> segment_bits
from pgcombine.queue
where queue = any (%s)
