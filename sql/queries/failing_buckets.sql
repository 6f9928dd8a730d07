-- The buckets whose last pass failed: the number of failures in a row, the last error, when the failures began, and
-- when workers try again.
select queue, bucket, attempts, sqlstate, error, since, retry_at
from pgcombine_internal.failures()
where not expires
order by queue, bucket
