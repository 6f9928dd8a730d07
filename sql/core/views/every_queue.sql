-- pgcombine.every_queue
-- No rows. Its columns stand for the rights that were granted on '*': a role with select on a column gets that right on
-- each new queue. It is a privilege, so PostgreSQL keeps it when the role is renamed, and pg_dump dumps it. The table
-- right_kind names the view that stands for a right: components have others.
-- The right monitor concerns all queues in any case.
create or replace view pgcombine.every_queue as
select null::boolean as enqueue, null::boolean as read, null::boolean as load, null::boolean as work,
       null::boolean as monitor, null::boolean as operate
where false;
