-- Adds a number of delivered entries to a bucket's total, and deletes the quarantined entries that export_take has
-- marked. The transaction that claimed the bucket runs it. Parameters: entries, export, bucket.
with counted as (
    update pgcombine.export_bucket b set delivered = b.delivered + %s, delivered_at = clock_timestamp()
    where b.export = %s and b.bucket = %s
    returning b.export
)
select pgcombine_internal.delete_flagged()
from counted c
where exists (select from pgcombine.export_quarantine q where q.export = c.export and q.since = '-infinity')
