-- The queues whose column notify is true: name, number of buckets, whether paused, and the table of the idle lock (see
-- wake).
select queue, buckets, paused, to_regclass(format('pgcombine.%I', queue || '_updates'))::oid
from pgcombine.queue
where notify
