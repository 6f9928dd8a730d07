-- pgcombine.every_export
-- Stands for the right to deliver each new export, as every_queue does for rights on queues. No rows.
create or replace view pgcombine.every_export as select null::boolean as export where false;
