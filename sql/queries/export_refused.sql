-- Quarantines an entry that the destination refused for its data. The transaction that took the entry out of its bucket
-- runs it. Parameters: export; the JSON that the statement of export_take returned; error.
insert into pgcombine.export_quarantine as q (export, seq, entry, error)
select %s, (e.entry ->> 'seq')::bigint, e.entry, left(%s, 2000) from (values (%s::jsonb)) e (entry)
on conflict on constraint export_quarantine_pkey do update set error = excluded.error, since = now()
