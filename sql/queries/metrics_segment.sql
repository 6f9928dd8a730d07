select queue, waiting_bytes from pgcombine.segment_stat
