-- About how much is pending in each bucket, by the monitoring views.
select queue, bucket, pending as backlog from pgcombine.bucket_stat order by queue, bucket
