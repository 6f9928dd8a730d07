-- What the passes of a queue took in the last three hours, by the minute.
select minute, updates, changes from pgcombine.minute_stat where queue = %s and minute >= now() - interval '3 hours'
    order by minute
