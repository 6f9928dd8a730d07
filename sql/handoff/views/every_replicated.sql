-- pgcombine.every_replicated
-- The view has no rows. Its column stands for the right handoff on each new queue (compare every_queue).
--   handoff  a role that has select on this column gets the right handoff on each new queue
create or replace view pgcombine.every_replicated as select null::boolean as handoff where false;
