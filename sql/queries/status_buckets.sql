-- About how many updates are pending in each bucket, from the monitoring views.
select queue, bucket, pending as backlog from pgcombine.bucket_stat order by queue, bucket
