-- The buckets of a queue. Parameter: the queue.
select bucket, pending, lag_seconds, last_pass_at, failures from pgcombine.bucket_stat where queue = %s order by bucket
