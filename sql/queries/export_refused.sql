-- Quarantines an entry that its destination refused, or an entry of the same key that follows it.
-- Parameters: the export; the bucket; the error, of which 2000 characters are stored; the entry as JSON.
insert into pgcombine.export_entry (export, bucket, seq, entry, error)
select %s, %s, (e.entry ->> 'seq')::bigint, e.entry, left(%s, 2000) from (values (%s::jsonb)) e (entry)
