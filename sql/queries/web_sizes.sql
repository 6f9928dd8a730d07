-- The tables of a queue with their sizes. The row of the log also has the size of segments that wait to be truncated.
-- Parameter: the queue.
select t."table", t.rows, t.bytes, t.index_bytes, s.waiting_bytes
from pgcombine.table_size t
left join pgcombine.segment_stat s on s.queue = t.queue and t."table" = t.queue || '_updates'
where t.queue = %s
order by t."table"
