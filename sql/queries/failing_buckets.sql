-- The buckets whose last pass failed: how often in a row, since when, why, and when they are tried again.
select queue, bucket, attempts, sqlstate, error, since, retry_at
from pgcombine_internal.failures()
where not expires
order by queue, bucket
