-- Adds a number of delivered or quarantined entries to a bucket's total. The transaction that claimed the bucket runs
-- this query. Parameters: number of entries, export, bucket.
update pgcombine.export_bucket b set delivered = b.delivered + %s, delivered_at = clock_timestamp()
where b.export = %s and b.bucket = %s
