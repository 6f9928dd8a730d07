-- pgcombine.every_replicated
-- No rows: the column stands for the right handoff on each new queue, as those of every_queue do for the rights of the
-- core.
--   handoff  select on it: the right handoff on each new queue
create or replace view pgcombine.every_replicated as select null::boolean as handoff where false;
