-- The figures of queues. Parameter: the name of one, null: all.
select * from pgcombine.queue_stat where queue = coalesce(%s, queue) order by queue
