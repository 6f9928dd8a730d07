select queue, waiting, waiting_bytes from pgcombine.segment_stat
