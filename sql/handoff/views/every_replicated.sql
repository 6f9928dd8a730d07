-- pgcombine.every_replicated
-- Stands for the right handoff on each new queue, as every_queue does for the rights of the core. No rows.
create or replace view pgcombine.every_replicated as select null::boolean as handoff where false;
