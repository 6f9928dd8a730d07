-- pgcombine.hint
-- One row for each other server and each write that the server has not acknowledged yet, in the order of servers and
-- tokens.
--   destination  name of the other server
--   token        token of the write
--   queue        name of the queue
--   updates      number of updates in the write
--   bytes        size of the write
--   since        when the hint was written
create or replace view pgcombine.hint as
select h.destination, h.token, h.queue, h.updates, pg_column_size(h.payload) as bytes, h.since
from pgcombine.handoff_hint h
order by h.destination, h.token;
