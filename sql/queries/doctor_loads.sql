-- The loads from Spark, each with the number of seconds since its seen_at (see load_stat).
select load, queue, run_id, bytes, extract(epoch from clock_timestamp() - seen_at)::double precision as silent_seconds
from pgcombine.load_stat
order by load
