-- Takes the idle lock of a feed's table (see take_idle_lock); returns the table and the result. Parameter: the feed.
select relation, pgcombine_internal.take_idle_lock(relation)
from (select ('pgcombine.' || quote_ident(%s || '_feed'))::regclass::oid as relation) feed
