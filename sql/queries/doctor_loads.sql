-- The loads from Spark, with the number of seconds since a writer was last active (seen_at of load_stat).
select load, queue, run_id, bytes, extract(epoch from clock_timestamp() - seen_at)::double precision as silent_seconds
from pgcombine.load_stat
order by load
