-- The loads from Spark, and for how many seconds their writers have been silent.
select load, queue, run_id, bytes, extract(epoch from clock_timestamp() - seen_at)::double precision as silent_seconds
from pgcombine.load_stat
order by load
