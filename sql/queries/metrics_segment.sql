select queue, waiting from pgcombine.segment_stat
