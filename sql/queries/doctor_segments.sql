-- The queues with segments that wait to be truncated, the number of these segments, and their size.
select queue, waiting, waiting_bytes from pgcombine.segment_stat where waiting > 0 order by queue
