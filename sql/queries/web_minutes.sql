-- The figures of the passes of a queue in the last three hours, one row for each minute.
select minute, updates, changes from pgcombine.minute_stat where queue = %s and minute >= now() - interval '3 hours'
    order by minute
