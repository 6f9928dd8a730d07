-- Opens the gates that this session has closed (see close_gate): enqueues don't notify any more. Parameter: their queues.
select pg_advisory_unlock(hashtext('pgcombine.gate'), hashtext(gate)), pg_advisory_unlock(hashtext('pgcombine.sleeper'), hashtext(gate))
from unnest(%s::text[]) gate
