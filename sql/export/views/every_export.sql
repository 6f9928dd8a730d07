-- pgcombine.every_export
-- The view has no rows. Its column stands for the right to deliver each new export (compare every_queue).
--   export  a role that has select on this column gets the right export on each new export
create or replace view pgcombine.every_export as select null::boolean as export where false;
