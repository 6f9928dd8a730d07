-- pgcombine.minute_stat
-- One row for each queue and each minute in which passes took updates. Minutes are kept for a day. A minute appears
-- once it has ended and a worker or drain has summed it up (see trim_journal).
--   queue    name of the queue
--   minute   when the minute began
--   passes   number of passes that ended in the minute and took updates
--   updates  number of updates that these passes took
--   keys     number of keys that these passes combined; a key counts once for each pass
--   changes  number of keys whose values these passes changed, counted likewise
--   seconds  sum of the durations of these passes
create or replace view pgcombine.minute_stat as
select q.queue, m.minute, m.passes, m.updates, m.keys, m.changes, m.seconds
from pgcombine.queue q
join pgcombine.pass_minute m using (queue);
