-- pgcombine.every_queue
-- The view has no rows: its columns stand for the rights that were granted on '*'. A role with select on a column gets
-- that right on each new queue. The grant on '*' is a privilege, so PostgreSQL keeps it when the role is renamed, and
-- pg_dump dumps it. Components have such views for their own rights (see the table right_kind).
-- The right monitor always concerns all queues.
--   enqueue  who has select on this column has the right enqueue on each new queue
--   read     who has select on this column has the right read on each new queue
--   load     who has select on this column has the right load on each new queue
--   work     who has select on this column has the right work on each new queue
--   monitor  who has select on this column has the right monitor
--   operate  who has select on this column has the right operate on each new queue
create or replace view pgcombine.every_queue as
select null::boolean as enqueue, null::boolean as read, null::boolean as load, null::boolean as work,
       null::boolean as monitor, null::boolean as operate
where false;
