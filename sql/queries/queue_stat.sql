-- The figures of queues. Parameter: the name of a queue; null: all.
select * from pgcombine.queue_stat where queue = coalesce(%s, queue) order by queue
