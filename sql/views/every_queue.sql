-- pgcombine.every_queue: no rows. Its columns stand for the rights that were granted on '*': select on one of them means
-- that the role gets the right on each queue (or export) that is made from then on. So this, too, is a privilege:
-- PostgreSQL keeps it when a role is renamed, and dumps it. monitor is about all queues in any case.
create or replace view pgcombine.every_queue as
select null::boolean as enqueue, null::boolean as read, null::boolean as load, null::boolean as work,
       null::boolean as export, null::boolean as handoff, null::boolean as monitor, null::boolean as operate
where false;
