-- pgcombine.segment_stat
-- One row a queue on which the reader has any right: the segments of its log, and those that wait to be retired.
create or replace view pgcombine.segment_stat with (security_barrier) as
select n.queue, f.segments, f.filled, f.waiting, f.bytes, f.waiting_bytes, n.at as measured_at
from pgcombine_internal.sample('sizes') n
cross join lateral jsonb_to_recordset(n.figures) f (segments bigint, filled bigint, waiting bigint, bytes bigint,
    waiting_bytes bigint)
where f.segments is not null;
