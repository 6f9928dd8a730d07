-- The names of all queues.
select queue from pgcombine.queue order by queue
