-- About how many updates are pending in each bucket.
select queue, bucket, pending as backlog from pgcombine.bucket_stat order by queue, bucket
