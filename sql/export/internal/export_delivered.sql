-- pgcombine_internal.export_delivered(export, bucket, entries)
-- Adds a number of delivered entries to a bucket's total, and deletes the quarantined entries that export_take has
-- marked. Call it in the transaction that claimed the bucket.
-- Tables written: export_bucket, export_quarantine.
create or replace function pgcombine_internal.export_delivered(export text, bucket integer, entries bigint)
returns void
language sql
as $$
    update pgcombine.export_bucket b
    set delivered = b.delivered + export_delivered.entries, delivered_at = clock_timestamp()
    where b.export = export_delivered.export and b.bucket = export_delivered.bucket;
    select pgcombine_internal.delete_marked()
    where exists (select from pgcombine.export_quarantine q where q.export = export_delivered.export and q.since = '-infinity')
$$;
