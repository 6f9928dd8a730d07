-- What passes took in the last hour, by the minute.
select * from pgcombine.minute_stat where minute >= now() - interval '1 hour' order by minute
