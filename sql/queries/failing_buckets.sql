-- The buckets where a pass has failed and none has taken all updates since: the number of failures, the last error,
-- when the failures began, and when workers try again. The error is null for roles without the right to see why passes
-- fail.
select queue, bucket, attempts, sqlstate, error, since, retry_at
from pgcombine_internal.failures()
where not expires
order by queue, bucket
