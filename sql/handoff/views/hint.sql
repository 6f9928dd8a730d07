-- pgcombine.hint
-- Writes that other servers have not acknowledged yet, for each server in token order.
create or replace view pgcombine.hint as
select h.destination, h.token, h.queue, h.updates, pg_column_size(h.payload) as bytes, h.since
from pgcombine.handoff_hint h
order by h.destination, h.token;
