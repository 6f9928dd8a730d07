-- Adds a number of delivered or quarantined entries to a bucket's total. If quarantined entries of the export are
-- marked for deletion, the query calls delete_flagged. The transaction that claimed the bucket runs this query.
-- Parameters: number of entries, export, bucket.
with counted as (
    update pgcombine.export_bucket b set delivered = b.delivered + %s, delivered_at = clock_timestamp()
    where b.export = %s and b.bucket = %s
    returning b.export
)
select pgcombine_internal.delete_flagged()
from counted c
where exists (select from pgcombine.export_quarantine q where q.export = c.export and q.since = '-infinity')
