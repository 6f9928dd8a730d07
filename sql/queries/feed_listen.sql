-- Tries to take the idle lock of a feed's table. Returns the table and the result of take_idle_lock. Parameter: the
-- name of the feed.
select relation, pgcombine_internal.take_idle_lock(relation)
from (select ('pgcombine.' || quote_ident(%s || '_feed'))::regclass::oid as relation) feed
