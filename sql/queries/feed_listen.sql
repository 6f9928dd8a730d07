-- Tries to take the idle lock of the changes of a queue. Returns the table and the result of take_idle_lock. Parameter:
-- the queue.
select relation, pgcombine_internal.take_idle_lock(relation)
from (select ('pgcombine.' || quote_ident(%s || '_changes'))::regclass::oid as relation) changes
