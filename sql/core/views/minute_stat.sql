-- pgcombine.minute_stat
-- What the passes took that ended in a minute, of each queue on which the reader has any right, for the last day. A
-- minute without passes has no row, nor has the one under way.
create or replace view pgcombine.minute_stat with (security_barrier) as
select q.queue, m.minute, m.passes, m.updates, m.keys, m.changes, m.seconds
from pgcombine.queue q
join pgcombine.pass_minute m using (queue)
where (select pgcombine_internal.has_right('', 'monitor')) or pgcombine_internal.has_right(q.queue, 'use');
