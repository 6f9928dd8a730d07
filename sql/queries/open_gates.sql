-- Opens the gates that this session has closed (see close_gate): enqueues don't notify any more. Parameter: the gates.
select pg_advisory_unlock(hashtext('pgcombine.gate'), gate::integer),
       pg_advisory_unlock(hashtext('pgcombine.sleeper'), gate::integer)
from unnest(%s::oid[]) gate
