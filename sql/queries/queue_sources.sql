-- The queues that notify: name, whether paused, and the gate (see wake).
select queue, paused, to_regclass(format('pgcombine.%I', queue || '_updates'))::oid
from pgcombine.queue
where notify
