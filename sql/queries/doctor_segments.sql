-- The segments that wait to be truncated.
select queue, waiting, waiting_bytes from pgcombine.segment_stat where waiting > 0 order by queue
