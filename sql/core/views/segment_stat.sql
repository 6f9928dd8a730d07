-- pgcombine.segment_stat
-- One row for each queue: the segments of its log, and those that wait to be truncated.
--   queue          name of the queue
--   segments       number of segments: four for each partition
--   filled         number of segments with rows, deleted rows included
--   waiting        number of segments that wait to be truncated, since no update on their last pages is pending (see
--                  sizes)
--   bytes          size of all segments
--   waiting_bytes  size of those that wait
--   measured_at    when the numbers of this row were measured
create or replace view pgcombine.segment_stat as
select n.queue, f.segments, f.filled, f.waiting, f.bytes, f.waiting_bytes, n.at as measured_at
from pgcombine_internal.sample('sizes') n
cross join lateral jsonb_to_recordset(n.figures) f (segments bigint, filled bigint, waiting bigint, bytes bigint,
    waiting_bytes bigint)
where f.segments is not null;
