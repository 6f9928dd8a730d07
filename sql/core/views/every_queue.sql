-- pgcombine.every_queue
-- No rows: the columns stand for the rights that were granted on '*'. A role with select on a column gets that right on
-- each new queue. It is a privilege, so PostgreSQL keeps it when the role is renamed, and pg_dump dumps it. The table
-- right_kind names the view that stands for a right: components have others.
-- The right monitor concerns all queues in any case.
--   enqueue  select on it: the right enqueue on each new queue
--   read     select on it: the right read on each new queue
--   load     select on it: the right load on each new queue
--   work     select on it: the right work on each new queue
--   monitor  select on it: the right monitor
--   operate  select on it: the right operate on each new queue
create or replace view pgcombine.every_queue as
select null::boolean as enqueue, null::boolean as read, null::boolean as load, null::boolean as work,
       null::boolean as monitor, null::boolean as operate
where false;
