-- pgcombine.every_export
-- No rows: the column stands for the right to deliver each new export, as those of every_queue do for rights on queues.
--   export  select on it: the right export on each new export
create or replace view pgcombine.every_export as select null::boolean as export where false;
