-- The buckets of a queue. The error is null if the bucket doesn't fail, or if the role must not see it. Parameter: the
-- queue.
select s.bucket, s.pending, s.lag_seconds, s.last_pass_at, s.last_pass_seconds, s.last_pass_updates, s.failures,
    s.failing_since,
       s.retry_at, s.sqlstate, f.error
from pgcombine.bucket_stat s
left join pgcombine.failure f using (queue, bucket)
where s.queue = %s
order by s.bucket
