-- The number of segments that wait to be truncated, and their size, for each queue that has any.
select queue, waiting, waiting_bytes from pgcombine.segment_stat where waiting > 0 order by queue
