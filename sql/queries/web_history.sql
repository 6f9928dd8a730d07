-- The figures of the passes of the last hour, one row for each queue and minute.
select * from pgcombine.minute_stat where minute >= now() - interval '1 hour' order by minute
