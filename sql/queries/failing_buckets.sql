-- The failing buckets: the number of failed passes, the last error, when the failures began, and when workers try
-- again. The error is null if the role must not see it (see failures).
select queue, bucket, attempts, sqlstate, error, since, retry_at
from pgcombine_internal.failures()
where not expires
order by queue, bucket
