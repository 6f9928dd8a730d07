-- Quarantines an entry that its destination refused. If the entry is in quarantine already, only its error and its time
-- change. The transaction that took the entry out of its bucket runs this query.
-- Parameters: the export; the error, of which 2000 characters are stored; the entry as JSON.
insert into pgcombine.export_quarantine as q (export, seq, entry, error)
select %s, (e.entry ->> 'seq')::bigint, e.entry, left(%s, 2000) from (values (%s::jsonb)) e (entry)
on conflict on constraint export_quarantine_pkey do update set error = excluded.error, since = now()
