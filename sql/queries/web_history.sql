-- The figures of passes in the last hour, by queue and minute.
select * from pgcombine.minute_stat where minute >= now() - interval '1 hour' order by minute
