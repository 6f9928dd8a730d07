-- The figures of passes over a queue in the last three hours, by minute. Parameter: the queue.
select minute, updates, changes from pgcombine.minute_stat where queue = %s and minute >= now() - interval '3 hours'
    order by minute
