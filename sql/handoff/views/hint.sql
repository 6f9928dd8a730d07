-- pgcombine.hint
-- One row for each hint: a write that waits here for another server. The rows come in the order of servers and tokens.
--   destination  name of the other server
--   token        token of the write
--   queue        name of the queue
--   updates      number of updates in the write
--   bytes        stored size of the write's payload
--   since        when the hint was written
create or replace view pgcombine.hint as
select h.destination, h.token, h.queue, h.updates, pg_column_size(h.payload) as bytes, h.since
from pgcombine.handoff_hint h
order by h.destination, h.token;
